import { type CallName, type NamedText, worded } from '../../../base/named-text.js';
import { flagOfOption } from '../../options/flag-names.js';
import { fieldOfOption, optionOfInput, type TextRoute } from '../../request-vocabulary.js';

/** Converts the name of a program's option, or a path in a chat's body, to a route's field. */
export type CallField = (name: string) => string;

/** Paths of a chat's fields with a route's names, in order of precedence. `[]` matches any index, which stays. */
export type OtherNames = readonly (readonly [string, string])[];

/** Makes the conversion for a route. */
export function fieldsOf(route: TextRoute, names: OtherNames = []): CallField {
  return (name) => renamed(fieldOfOption(name, route), names);
}

/**
 * The same where the tools that a model receives are not those of the request, by the paths that they have
 * there.
 */
export function withPlaces(callField: CallField, places: readonly string[]): CallField {
  return (name) => callField(name.replace(/^tools\[(\d+)\]/, (tool, index) => places[Number(index)] ?? tool));
}

/** Words a sentence for a client of a route; options of the engine become the server's flags. */
export function inFields(text: NamedText, callField: CallField): string {
  const call: CallName = ({ of, name }) => {
    if (of === 'option') return flagOfOption(name) ?? name;
    return callField(of === 'input' ? (optionOfInput(name) ?? name) : name);
  };
  return worded(text, call);
}

function renamed(path: string, names: OtherNames): string {
  const parts = partsOf(path);
  for (const [from, to] of names) {
    const pattern = partsOf(from);
    if (!pattern.every((part, i) => part === parts[i] || (part === '[]' && isIndex(parts[i])))) continue;
    const indexes = parts.slice(0, pattern.length).filter(isIndex);
    const start = partsOf(to).map((part) => (part === '[]' ? indexes.shift()! : part));
    return joined([...start, ...parts.slice(pattern.length)]);
  }
  return path;
}

/** Parts of a path: tools, [0], function, name of `tools[0].function.name`. */
function partsOf(path: string): string[] {
  return path.match(/\[\d*\]|[^.[]+/g) ?? [];
}

function isIndex(part: string | undefined): boolean {
  return part?.startsWith('[') ?? false;
}

function joined(parts: readonly string[]): string {
  return parts.reduce((path, part) => (isIndex(part) ? path + part : `${path}.${part}`));
}
