// Makes xterm.js work under a Content-Security-Policy without inline styles. It creates <style> elements and sets style
// attributes, which the policy refuses; style sheets and declarations that scripts make are allowed. Its option
// documentOverride is of no use here: the version 6.0 takes some elements from the global document all the same.

// An element in the place of <style> whose text becomes a style sheet of the document.
function styleElement(): HTMLElement {
  const element = Document.prototype.createElement.call(document, "span");
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

function createElement(name: string, options?: ElementCreationOptions): HTMLElement {
  return name === "style" ? styleElement() : Document.prototype.createElement.call(document, name, options);
}

// Runs an action in which createElement("style") gives such elements.
export function withStyleSheets(action: () => void): void {
  Object.defineProperty(document, "createElement", { configurable: true, value: createElement });
  try {
    action();
  } finally {
    Reflect.deleteProperty(document, "createElement");
  }
}

// The colours of cells are style attributes of spans, set at each drawing.
Object.defineProperty(HTMLSpanElement.prototype, "setAttribute", {
  configurable: true,
  value(this: HTMLSpanElement, name: string, value: string) {
    if (name === "style") this.style.cssText = value;
    else Element.prototype.setAttribute.call(this, name, value);
  },
});
