import { type CodePoints, type Expr, GuideError, intersection } from '../grammar.js';
import { regexExpr } from './regex.js';

/** The characters that JSON allows between its tokens: tab, line feed, carriage return, space. */
const WHITE: CodePoints = [
  [0x09, 0x0a],
  [0x0d, 0x0d],
  [0x20, 0x20],
];

/**
 * White space of a client's pattern, a regular expression such as `[ ]?` or `\\s*`. Classes are taken without the characters
 * that JSON does not allow there. @throws GuideError for a pattern that wants any of them
 */
export function whiteSpaceOf(pattern: string): Expr {
  return onlyWhite(regexExpr(pattern, { mode: 'full' }));
}

function onlyWhite(expr: Expr): Expr {
  switch (expr.kind) {
    case 'chars': {
      const white = withoutOthers(expr);
      if (white === null) throw fault();
      return white;
    }
    case 'text':
      if (!/^[\t\n\r ]*$/.test(expr.text)) throw fault();
      return expr;
    case 'seq':
    case 'alt':
      return { ...expr, items: expr.items.map(onlyWhite) };
    case 'repeat':
      return { ...expr, item: onlyWhite(expr.item) };
    case 'graph': {
      const edges = expr.edges.flatMap((edge) => {
        const white = withoutOthers(edge.expr);
        return white === null ? [] : [{ ...edge, expr: white }];
      });
      if (edges.length === 0) throw fault();
      return { ...expr, edges };
    }
    default:
      throw fault();
  }
}

/** White space among some characters; null where there is none. */
function withoutOthers(expr: Expr): Expr | null {
  const ranges = expr.kind === 'chars' ? intersection(expr.ranges, WHITE) : [];
  return ranges.length === 0 ? null : { kind: 'chars', ranges };
}

function fault(): GuideError {
  return new GuideError(
    'The pattern of white space has a character that JSON does not allow between its tokens; it allows space, tab, line feed and carriage return.',
  );
}
