// The search of pages that are opened as files: browsers refuse Worker there, so a hidden frame runs the worker's script.
// Stands in the place of a script that the theme would fetch from another host.
if (location.protocol === "file:") {
  window.Worker = class extends EventTarget {
    constructor(url) {
      super();
      this.frame = document.createElement("iframe");
      this.frame.hidden = true;
      this.frame.title = "search";
      document.body.append(this.frame);
      const inner = this.frame.contentWindow, base = new URL(url, location.href);
      const load = (source) => new Promise((loaded, failed) => {
        const script = inner.document.createElement("script");
        Object.assign(script, { src: new URL(source, base), onload: loaded, onerror: failed });
        inner.document.head.append(script);
      });
      inner.postMessage = (data) => this.dispatchEvent(new MessageEvent("message", { data }));
      inner.importScripts = (...sources) => sources.reduce((before, source) => before.then(() => load(source)), Promise.resolve());
      this.ready = load(base);
    }
    postMessage(data) {
      this.ready.then(() => this.frame.contentWindow.dispatchEvent(new MessageEvent("message", { data })));
    }
    terminate() {
      this.frame.remove();
    }
  };
}
