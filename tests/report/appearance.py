"""Finds what a reader of a page would see as a defect: text that overflows, is cut off, overlaps other text, or has too little contrast."""

# JavaScript that lists every piece of text: the boxes of its glyphs, the box that must contain them, its colour, and the colour
# behind it.
TEXTS = """(() => {
  const rgb = text => { const p = text.match(/[\\d.]+/g).map(Number); return p.length > 3 && p[3] === 0 ? null : p.slice(0, 3) };
  const behind = element => { if (!element) return [255, 255, 255];
    const color = getComputedStyle(element).backgroundColor.match(/[\\d.]+/g).map(Number), part = color.length > 3 ? color[3] : 1;
    return part == 1 ? color : behind(element.parentElement).map((c, i) => part * color[i] + (1 - part) * c) };
  const box = r => ({left: r.left + scrollX, right: r.right + scrollX, top: r.top + scrollY, bottom: r.bottom + scrollY});
  const found = [], walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  for (let node; node = walker.nextNode();) {
    if (!node.data.trim() || node.parentElement.closest('script')) continue;
    const style = getComputedStyle(node.parentElement), range = document.createRange();
    range.selectNodeContents(node);
    const block = node.parentElement.closest('td,th,p,h1,h2,h3,h4,dd,dt,li,.card,.ends');
    found.push({text: node.data.trim().slice(0, 60), boxes: [...range.getClientRects()].map(box),
                block: box(block.getBoundingClientRect()), shown: style.display !== 'none' && range.getClientRects().length > 0,
                color: rgb(style.color), behind: behind(node.parentElement), size: parseFloat(style.fontSize)});
  }
  const paths = [...document.querySelectorAll('path:not(.axis)')].map(path => ({
    color: rgb(getComputedStyle(path).stroke), behind: behind(path.closest('section,body')), box: box(path.getBoundingClientRect()),
    cell: box(path.closest('td,section').getBoundingClientRect())}));
  const labels = [...document.querySelectorAll('.v td')].map(cell => {
    const label = getComputedStyle(cell, ':before'), fill = rgb(label.backgroundColor);
    return label.content === 'none' || label.content === 'normal' || !fill ? null : {color: rgb(label.color), behind: fill} })
    .filter(label => label);
  return {found, paths, labels, width: innerWidth, scroll: document.documentElement.scrollWidth}
})()"""


def contrast(one, other):
    """Returns the contrast of two colours: the ratio of their relative luminances, as WCAG 2.2 defines it."""
    def luminance(color):
        parts = [c / 255 / 12.92 if c / 255 <= 0.04045 else ((c / 255 + 0.055) / 1.055) ** 2.4 for c in color]
        return 0.2126 * parts[0] + 0.7152 * parts[1] + 0.0722 * parts[2]
    high, low = sorted((luminance(one), luminance(other)), reverse=True)
    return (high + 0.05) / (low + 0.05)


def overlap(a, b):
    return min(a["right"], b["right"]) - max(a["left"], b["left"]) > 1 and min(a["bottom"], b["bottom"]) - max(a["top"], b["top"]) > 6


def faults(seen):
    """Returns descriptions of all defects of a page that a reader would see."""
    said = []
    if seen["scroll"] > seen["width"]:
        said.append(f"the page is {seen['scroll']} wide, the screen {seen['width']}")
    shown = [text for text in seen["found"] if text["shown"]]
    for text in shown:
        for box in text["boxes"]:
            if box["left"] < -0.5 or box["right"] > seen["width"] + 0.5:
                said.append(f"outside the screen: {text['text']}")
            if box["right"] > text["block"]["right"] + 1 or box["left"] < text["block"]["left"] - 1:
                said.append(f"outside its box: {text['text']}")
        if text["size"] < 12:
            said.append(f"smaller than 12 pixels: {text['text']}")
        if contrast(text["color"], text["behind"]) < 4.5:
            said.append(f"contrast {contrast(text['color'], text['behind']):.2f}: {text['text']}")
    boxes = sorted(((box, text["text"]) for text in shown for box in text["boxes"]), key=lambda pair: pair[0]["top"])
    for i, (box, text) in enumerate(boxes):
        for other, more in boxes[i + 1:]:
            if other["top"] > box["bottom"]:
                break
            if overlap(box, other):
                said.append(f"on top of each other: {text} / {more}")
    for path in seen["paths"]:
        if contrast(path["color"], path["behind"]) < 3:
            said.append(f"a line with contrast {contrast(path['color'], path['behind']):.2f}")
        if path["box"]["left"] < path["cell"]["left"] - 2 or path["box"]["right"] > path["cell"]["right"] + 2:
            said.append("a line outside its cell")
    said += [f"a label with contrast {contrast(label['color'], label['behind']):.2f}" for label in seen["labels"]
             if contrast(label["color"], label["behind"]) < 4.5]
    return said
