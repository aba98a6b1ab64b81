/** A value of JSON, with texts of JSON that no serialiser writes: numbers of 400 digits, lists in lists 10 000 times. */
export type Json =
  | null
  | boolean
  | number
  | string
  | RawJson
  | readonly Json[]
  | { readonly [key: string]: Json };

export class RawJson {
  readonly text: string;

  constructor(text: string) {
    this.text = text;
  }
}

export function writeJson(value: Json): string {
  if (value instanceof RawJson) return value.text;
  if (Array.isArray(value)) return `[${value.map(writeJson).join()}]`;
  if (typeof value !== 'object' || value === null) return JSON.stringify(value);
  const fields = Object.entries(value).map(([key, field]) => `${JSON.stringify(key)}:${writeJson(field)}`);
  return `{${fields.join()}}`;
}

export type Path = readonly (string | number)[];

/** Paths of all values within a value; the first is that of the value itself. */
export function pathsOf(value: Json, path: Path = []): Path[] {
  if (typeof value !== 'object' || value === null || value instanceof RawJson) return [path];
  const within = Array.isArray(value) ? [...value.entries()] : Object.entries(value);
  return [path, ...within.flatMap(([key, inner]) => pathsOf(inner as Json, [...path, key]))];
}

export function valueAt(value: Json, path: Path): Json {
  return path.reduce((inner, key) => (inner as { [key: string | number]: Json })[key]!, value);
}

/** The same with what stands at a path changed; `undefined` leaves it out. */
export function changedAt(value: Json, [key, ...rest]: Path, change: (old: Json) => Json | undefined): Json {
  if (key === undefined) return change(value) ?? null;
  if (Array.isArray(value)) {
    const items = [...(value as readonly Json[])];
    const item =
      rest.length === 0 ? change(items[key as number]!) : changedAt(items[key as number]!, rest, change);
    items.splice(key as number, 1, ...(item === undefined ? [] : [item]));
    return items;
  }
  const fields = value as { readonly [key: string]: Json };
  const { [key]: old, ...others } = fields;
  const field = rest.length === 0 ? change(old!) : changedAt(old!, rest, change);
  return field === undefined ? others : { ...fields, [key]: field };
}

/** `messages[0].content`, as refusals name fields. */
export function nameOf(path: Path): string {
  return path.reduce<string>(
    (name, key) => (typeof key === 'number' ? `${name}[${key}]` : name === '' ? key : `${name}.${key}`),
    '',
  );
}
