"""The plots of the performance pages, made from its tables when the site is built: a picture never says something else than the table.

Each section whose rows have a peer and a ratio gets one chart: a bar per row, the length is our time over the peer's, on a logarithmic scale.
Bars left of the line at 1 are faster than the peer. Sections with more rows show the distribution of their ratios instead.
"""

import html
import math
import re

MOST_BARS = 24
WIDTH, LABEL, ROW, TOP = 900, 370, 20, 56
STYLE = """<style>
.fast { fill: #1a7f37; } .slow { fill: #bc4c00; } .axis { stroke: #57606a; } .ground { fill: #ffffff; }
text { fill: #1f2328; font: 12px system-ui, sans-serif; } .title { font-weight: 600; font-size: 14px; }
@media (prefers-color-scheme: dark) {
  .fast { fill: #3fb950; } .slow { fill: #f0883e; } .axis { stroke: #8b949e; } .ground { fill: #0d1117; } text { fill: #e6edf3; }
}
</style>"""
ROWS = re.compile(r"^\| ([^|]+) \| [^|]+ \| [^|(]+\((\w+)[^)]*\) \| ([\d.e+-]+) \|", re.MULTILINE)
OWN = {"ours"}  # peers that are Backplane itself, in another mode


def sections(text):
    """(title, [(what, peer, ratio)]) of the sections of the page, with rows that have another library as the peer."""
    for part in re.split(r"^## ", text, flags=re.MULTILINE)[1:]:
        rows = [(what.strip(), peer, float(ratio)) for what, peer, ratio in ROWS.findall(part) if peer not in OWN]
        rows = [row for row in rows if row[2] > 0]
        if rows:
            yield part.partition("\n")[0], rows


def scale(ratios):
    """A function from a ratio to a position, and the ticks, over whole powers of ten."""
    low, high = math.floor(math.log10(min(*ratios, 0.5))), math.ceil(math.log10(max(*ratios, 2)))
    left, right = LABEL + 10, WIDTH - 100
    at = lambda ratio: left + (math.log10(ratio) - low) / (high - low) * (right - left)  # noqa: E731
    return at, [10.0**k for k in range(low, high + 1)]


def frame(title, note, height, body):
    """A whole picture with its title; the alternative text says the same as the page's caption."""
    label = html.escape(f"{title}: {note}", quote=True)
    return (f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" role="img" aria-label="{label}">\n{STYLE}\n'
            f'<rect class="ground" width="{WIDTH}" height="{height}"/>\n<text class="title" x="10" y="20">{html.escape(title)}</text>\n'
            + "\n".join(body) + "\n</svg>\n")  # fmt: skip


def ticks(at, marks, bottom):
    lines = [f'<line class="axis" x1="{at(1):.1f}" x2="{at(1):.1f}" y1="{TOP - 8}" y2="{bottom}"/>']
    return lines + [f'<text x="{at(mark):.1f}" y="{TOP - 12}" text-anchor="middle">{mark:g}</text>' for mark in marks]


def bars(title, rows):
    at, marks = scale([ratio for _, _, ratio in rows])
    body = []
    for number, (what, peer, ratio) in enumerate(rows):
        y = TOP + number * ROW
        name = what if len(what) <= 54 else what[:53] + "…"
        start, end = sorted((at(ratio), at(1)))
        kind = "fast" if ratio <= 1 else "slow"
        body.append(f'<text x="{LABEL}" y="{y + 13}" text-anchor="end">{html.escape(name)}</text>')
        body.append(f'<rect class="{kind}" x="{start:.1f}" y="{y + 3}" width="{max(end - start, 1):.1f}" height="{ROW - 6}"/>')
        body.append(f'<text x="{WIDTH - 88}" y="{y + 13}">{ratio:.2g} {html.escape(peer)}</text>')
    bottom = TOP + len(rows) * ROW
    return frame(title, "time over the peer's, one bar per row", bottom + 10, ticks(at, marks, bottom) + body)


def distribution(title, rows):
    """How many rows have which ratio, by peer: quarters of a power of two."""
    peers = sorted({peer for _, peer, _ in rows})
    at, marks = scale([ratio for _, _, ratio in rows])
    body, y = [], TOP
    for peer in peers:
        ratios = sorted(ratio for _, other, ratio in rows if other == peer)
        faster = sum(ratio <= 1 for ratio in ratios)
        counts = {}
        for ratio in ratios:
            step = round(math.log2(ratio) * 4)
            counts[step] = counts.get(step, 0) + 1
        most, height = max(counts.values()), 70
        for step, count in counts.items():
            x, tall = at(2 ** (step / 4)), max(1.0, count / most * height)
            body.append(f'<rect class="{"fast" if step <= 0 else "slow"}" x="{x - 2:.1f}" y="{y + height - tall:.1f}" width="4" height="{tall:.1f}"/>')
        body.append(f'<text x="{LABEL}" y="{y + height - 6}" text-anchor="end">{html.escape(peer)}: {faster} of {len(ratios)} faster, median {ratios[len(ratios) // 2]:.2g}</text>')
        y += height + 14
    return frame(title, "how many rows have which time over the peer's", y, ticks(at, marks, y - 8) + body)


def write_plots(page, folder, prefix="plot"):
    """The page with a picture at the head of each section; the pictures go to `folder`. Returns how many there are."""
    text = page.read_text(encoding="utf-8")
    count = 0
    for title, rows in sections(text):
        count += 1
        name = f"{prefix}-{count}.svg"
        picture = bars(title, rows) if len(rows) <= MOST_BARS else distribution(title, rows)
        (folder / name).write_text(picture, encoding="utf-8")
        caption = f"Our time over the peer's, on a logarithmic scale; left of 1, Backplane is faster. {len(rows)} rows of the table below."
        text = text.replace(f"## {title}\n", f"## {title}\n\n![{caption}]({name})\n\n{caption}\n", 1)
    page.write_text(text, encoding="utf-8")
    return count
