/** Tokens of the text format as far as lines need them: comments and texts are passed over whole. */
const TOKEN = /#[^\n]*|"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*'|[A-Za-z_][\w.]*|[{}<>[\]:;,]|\n|[^\s]/g;

/**
 * Lines of the fields of a text in protobuf's text format, by their paths: `input[1].dims`. A text that is no such format gives some
 * lines, or none. The first of a list has no index.
 *
 *   input [ { name: "a" dims: [ 1 ] }, ... ]      input input.name input.dims input[1] ...
 *   input { name: "a" }  input { name: "b" }      the same
 */
export function pbtxtLines(text: string): Map<string, number> {
  const lines = new Map<string, number>();
  /** Fields of the messages around, and how often each has come. */
  const open: { path: string; counts: Map<string, number>; list: string | null }[] = [
    { path: '', counts: new Map(), list: null },
  ];
  let line = 1;
  let field: string | null = null;
  for (const [token] of text.matchAll(TOKEN)) {
    const around = open.at(-1)!;
    if (token === '\n') line++;
    else if (token[0] === '#') continue;
    else if (token === '{' || token === '<') {
      const name: string | null = field ?? around.list;
      if (name === null) return lines;
      const index = around.counts.get(name) ?? 0;
      around.counts.set(name, index + 1);
      const path = index === 0 ? joined(around.path, name) : `${joined(around.path, name)}[${index}]`;
      if (!lines.has(path)) lines.set(path, line);
      open.push({ path, counts: new Map(), list: null });
      field = null;
    } else if (token === '}' || token === '>') {
      if (open.length > 1) open.pop();
      field = null;
    } else if (token === '[') {
      around.list = field;
    } else if (token === ']') {
      around.list = null;
      field = null;
    } else if (/^[A-Za-z_]/.test(token) && field === null && around.list === null) {
      field = token;
      const path = joined(around.path, token);
      if (!lines.has(path)) lines.set(path, line);
    } else if (token !== ':' && token !== ',' && token !== ';' && around.list === null) field = null;
  }
  return lines;
}

const joined = (path: string, name: string) => (path === '' ? name : `${path}.${name}`);
