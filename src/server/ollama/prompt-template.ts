import { ApiError } from '../web/errors.js';

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

const MAX_DEPTH = 16;
/** Most UTF-16 units of a template. */
const MAX_UNITS = 65_536;
/** Most UTF-16 units between the braces of an action that is no comment: what is known is far shorter. */
const MAX_ACTION_UNITS = 256;

/**
 * The prompt of a template in the form that Modelfiles have, as far as a prompt of /api/generate needs it:
 * values, and `if` with `else`. What follows `.Response` is left out: there the model continues.
 *
 *   {{ if .System }}<|system|>{{ .System }}{{ end }}<|user|>{{ .Prompt }}<|assistant|>{{ .Response }}
 *
 * @param checkUnits called with the prompt's UTF-16 units before it is made: a value may stand in a template
 * thousands of times
 * @throws ApiError for a template with anything else
 */
export function renderTemplate(
  source: string,
  values: TemplateValues,
  checkUnits: (units: number) => void,
): string {
  const nodes = parse(source);
  const parts: string[] = [];
  /** @returns false where the answer begins */
  const write = (list: readonly Node[]): boolean => {
    for (const node of list) {
      if (node.kind === 'text') parts.push(node.text);
      else if (node.kind === 'value') {
        if (node.name === 'Response') return false;
        parts.push(values[node.name]);
      } else {
        const isThere = node.name !== 'Response' && values[node.name] !== '';
        if (!write(isThere ? node.body : node.otherwise)) return false;
      }
    }
    return true;
  };
  write(nodes);
  checkUnits(parts.reduce((units, { length }) => units + length, 0));
  return parts.join('');
}

/** `{{ action }}`, with what of the white space around it goes. */
interface Mark {
  action: string;
  /** Its first unit, and the one after its end. */
  begin: number;
  end: number;
  trimsBefore: boolean;
  trimsBehind: boolean;
}

/** Actions of a template in one pass: after an unclosed one nothing is read. @throws ApiError */
function* marksOf(source: string): Generator<Mark> {
  for (let begin = source.indexOf('{{'); begin >= 0; ) {
    const close = source.indexOf('}}', begin + 2);
    if (close < 0) throw refused(`has {{ at character ${begin + 1} without }} after it`);
    const trimsBefore = source[begin + 2] === '-' && close > begin + 2;
    const first = begin + (trimsBefore ? 3 : 2);
    const trimsBehind = close > first && source[close - 1] === '-';
    const action = source.slice(first, trimsBehind ? close - 1 : close).trim();
    if (action.length > MAX_ACTION_UNITS && !action.startsWith('/*')) {
      throw refused(
        `has {{ at character ${begin + 1} with ${action.length} characters up to its }}; ${MAX_ACTION_UNITS} is the limit`,
      );
    }
    const end = close + 2;
    yield { action, begin, end, trimsBefore, trimsBehind };
    begin = source.indexOf('{{', end);
  }
}

function parse(source: string): Node[] {
  if (source.length > MAX_UNITS) {
    throw refused(`has ${source.length} characters; ${MAX_UNITS} is the limit`);
  }
  const root: Node[] = [];
  const open: { node: Node & { kind: 'if' }; into: Node[] }[] = [];
  let into = root;
  let at = 0;
  let trims = false;
  const addText = (text: string) => {
    const rest = trims ? text.trimStart() : text;
    if (rest !== '') into.push({ kind: 'text', text: rest });
  };
  for (const { action, begin, end, trimsBefore, trimsBehind } of marksOf(source)) {
    const text = source.slice(at, begin);
    addText(trimsBefore ? text.trimEnd() : text);
    at = end;
    trims = trimsBehind;
    if (/^if\s/.test(action)) {
      const name = nameOf(action.slice('if'.length).trim(), action);
      const node: Node = { kind: 'if', name, body: [], otherwise: [] };
      if (open.length === MAX_DEPTH) throw refused(`has more than ${MAX_DEPTH} ifs within each other`);
      into.push(node);
      open.push({ node, into });
      into = node.body;
    } else if (action === 'else' && open.length > 0) into = open.at(-1)!.node.otherwise;
    else if (action === 'end' && open.length > 0) into = open.pop()!.into;
    else if (!action.startsWith('/*')) into.push({ kind: 'value', name: nameOf(action, action) });
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
