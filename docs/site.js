// Wide tables and long lines of code scroll sideways: with the keyboard, too. Runs when a page is there, and after the theme has wrapped tables.
function makeScrollable() {
  for (const element of document.querySelectorAll(".md-typeset__scrollwrap, .md-typeset pre > code")) {
    if (element.scrollWidth > element.clientWidth) {
      element.tabIndex = 0;
      element.setAttribute("role", "region");
      element.setAttribute("aria-label", element.matches("code") ? "code" : "table");
    }
  }
}
window.addEventListener("load", makeScrollable);
window.addEventListener("resize", makeScrollable);
