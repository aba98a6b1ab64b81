import { ApiError } from '../openai/errors.js';

/** Values that a template may name. */
export interface TemplateValues {
  System: string;
  Prompt: string;
  Suffix: string;
}

type Node =
  | { kind: 'text'; text: string }
  | { kind: 'value'; name: keyof TemplateValues | 'Response' }
  | { kind: 'if'; name: keyof TemplateValues | 'Response'; body: Node[]; otherwise: Node[] };

const MARK = /\{\{(-?)\s*(.*?)\s*(-?)\}\}/gs;
const MOST_DEPTH = 16;

/**
 * The prompt of a template in the form that Modelfiles have, as far as a prompt of /api/generate needs it: values, and `if`
 * with `else`. What stands behind `.Response` is left out: there the model goes on.
 *
 *   {{ if .System }}<|system|>{{ .System }}{{ end }}<|user|>{{ .Prompt }}<|assistant|>{{ .Response }}
 *
 * @throws ApiError for a template with anything else
 */
export function renderTemplate(source: string, values: TemplateValues): string {
  const nodes = parse(source);
  let text = '';
  /** @returns false where the answer begins */
  const write = (list: readonly Node[]): boolean => {
    for (const node of list) {
      if (node.kind === 'text') text += node.text;
      else if (node.kind === 'value') {
        if (node.name === 'Response') return false;
        text += values[node.name];
      } else {
        const isThere = node.name !== 'Response' && values[node.name] !== '';
        if (!write(isThere ? node.body : node.otherwise)) return false;
      }
    }
    return true;
  };
  write(nodes);
  return text;
}

function parse(source: string): Node[] {
  const root: Node[] = [];
  const open: { node: Node & { kind: 'if' }; into: Node[] }[] = [];
  let into = root;
  let at = 0;
  let trims = false;
  const addText = (text: string) => {
    const rest = trims ? text.trimStart() : text;
    if (rest !== '') into.push({ kind: 'text', text: rest });
  };
  for (const mark of source.matchAll(MARK)) {
    const [whole, before, action, behind] = mark;
    const text = source.slice(at, mark.index);
    addText(before === '-' ? text.trimEnd() : text);
    at = mark.index + whole.length;
    trims = behind === '-';
    if (/^if\s/.test(action!)) {
      const name = nameOf(action!.slice('if'.length).trim(), action!);
      const node: Node = { kind: 'if', name, body: [], otherwise: [] };
      if (open.length === MOST_DEPTH) throw refused(`has more than ${MOST_DEPTH} ifs within each other`);
      into.push(node);
      open.push({ node, into });
      into = node.body;
    } else if (action === 'else' && open.length > 0) into = open.at(-1)!.node.otherwise;
    else if (action === 'end' && open.length > 0) into = open.pop()!.into;
    else if (!action!.startsWith('/*')) into.push({ kind: 'value', name: nameOf(action!, action!) });
  }
  addText(source.slice(at));
  if (open.length > 0) throw refused('has an if without an end');
  return root;
}

function nameOf(argument: string, action: string): keyof TemplateValues | 'Response' {
  const name = argument.slice(1);
  const isKnown = name === 'System' || name === 'Prompt' || name === 'Suffix' || name === 'Response';
  if (argument.startsWith('.') && isKnown) return name;
  const shown = action.slice(0, 60);
  throw refused(`has {{ ${shown} }}; .System, .Prompt, .Suffix, .Response, if, else and end are known`);
}

function refused(what: string): ApiError {
  return new ApiError(400, `'template' ${what}.`, { param: 'template', code: 'invalid_value' });
}
