// A document for xterm.js that works under a Content-Security-Policy without inline styles: xterm.js creates <style>
// elements and sets style attributes, which the policy refuses. Style sheets made by scripts are allowed.

// An element in the place of <style> whose text becomes a style sheet of the document.
function styleElement(): HTMLElement {
  const element = document.createElement("span");
  const sheet = new CSSStyleSheet();
  element.hidden = true;
  document.adoptedStyleSheets = [...document.adoptedStyleSheets, sheet];
  Object.defineProperty(element, "textContent", { set: (text: string) => sheet.replaceSync(text) });
  Object.defineProperty(element, "remove", {
    value: () => {
      document.adoptedStyleSheets = document.adoptedStyleSheets.filter((each) => each !== sheet);
      Element.prototype.remove.call(element);
    },
  });
  return element;
}

// The rows of the screen consist of these; the colours of a cell are set as an attribute.
function spanElement(): HTMLElement {
  const element = document.createElement("span");
  Object.defineProperty(element, "setAttribute", {
    value: (name: string, value: string) => {
      if (name === "style") element.style.cssText = value;
      else Element.prototype.setAttribute.call(element, name, value);
    },
  });
  return element;
}

function createElement(name: string): HTMLElement {
  if (name === "style") return styleElement();
  return name === "span" ? spanElement() : document.createElement(name);
}

export const policyDocument: Document = new Proxy(document, {
  get(target, name) {
    if (name === "createElement") return createElement;
    const value: unknown = Reflect.get(target, name, target);
    return typeof value === "function" ? (value as (...args: unknown[]) => unknown).bind(target) : value;
  },
});
