// The contrast of every text on the page to what is behind it, as WCAG 2 defines it.
// Texts of drawings stand on cards. Gives what is below the limit, and how many were looked at.
((limit) => {
  const parse = (text) => {
    const [r, g, b, a] = text.match(/[\d.]+/g).map(Number);
    return { rgb: [r, g, b], opaque: a === undefined || a > 0 };
  };
  const luminance = (rgb) => {
    const [r, g, b] = rgb.map((part) => {
      const c = part / 255;
      return c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4;
    });
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const ground = (element) => {
    for (let one = element; one; one = one.parentElement) {
      const colour = parse(getComputedStyle(one).backgroundColor);
      if (colour.opaque) return colour.rgb;
    }
    return [255, 255, 255];
  };
  const seen = [];
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) {
    const element = walker.currentNode.parentElement;
    const text = walker.currentNode.textContent.trim();
    if (!text || !element.checkVisibility() || element.localName === "title") continue;
    if (element.closest("noscript")) continue;
    const style = getComputedStyle(element);
    const [a, b] = [
      luminance(parse(element instanceof SVGElement ? style.fill : style.color).rgb),
      luminance(ground(element)),
    ];
    const ratio = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
    seen.push({ text, ratio });
  }
  return { count: seen.length, low: seen.filter((one) => one.ratio < limit) };
})(4.5)
