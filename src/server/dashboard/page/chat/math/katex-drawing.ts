// A bundle of its own, which the page asks for with the first formula.
import katex, { type KatexOptions } from 'katex';

/** What KaTeX makes before it makes nodes. */
interface Drawn {
  children?: Drawn[];
  attributes?: Record<string, string>;
  toNode(): Node;
}

const { __renderToDomTree: draw } = katex as unknown as {
  __renderToDomTree(tex: string, options: KatexOptions): Drawn;
};

/** A model writes the formula: it may name no address and no style, define nothing without end, and be no larger than a page. */
const BOUNDS: KatexOptions = { trust: false, maxExpand: 300, maxSize: 20, strict: 'ignore' };

/**
 * Nodes of a formula.
 * @throws Error where it is no TeX that KaTeX knows
 */
export function formulaNodes(tex: string, isDisplay: boolean): Node {
  const drawn = draw(tex, { ...BOUNDS, displayMode: isDisplay, throwOnError: true });
  keepStyles(drawn);
  return drawn.toNode();
}

/** The page's policy refuses attributes of style, which KaTeX gives to some nodes; what a program sets is let through. */
function keepStyles(drawn: Drawn): void {
  const { style, ...attributes } = drawn.attributes ?? {};
  if (style !== undefined) {
    const make = drawn.toNode;
    drawn.attributes = attributes;
    drawn.toNode = function () {
      const node = make.call(this) as ElementCSSInlineStyle & Node;
      node.style.cssText = style;
      return node;
    };
  }
  for (const child of drawn.children ?? []) keepStyles(child);
}
