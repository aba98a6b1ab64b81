/**
 * A name in a sentence that may be shown under another name: a tensor of a request (`input`), an option of the engine
 * (`option`), or a field of the program's or the server's own API (`field`).
 */
export interface Name {
  readonly of: 'input' | 'option' | 'field';
  readonly name: string;
}

/**
 * A sentence whose names are data. It becomes words only where it is read: see `worded`. Crosses threads
 * unchanged.
 */
export type NamedText = string | readonly (string | Name)[];

/** Converts a name to the words for it. `isFirst`: the sentence begins with the name. */
export type CallName = (name: Name, isFirst: boolean) => string;

/** Names a tensor of a request, such as request_output_len. */
export function input(name: string): Name {
  return { of: 'input', name };
}

/** Names an option of the manager, such as maxNumTokens, without the objects that contain it. */
export function option(name: string): Name {
  return { of: 'option', name };
}

/**
 * Names a field as the caller of the program's or the server's API wrote it, such as maxTokens or tools[0].function.
 */
export function field(name: string): Name {
  return { of: 'field', name };
}

/** Makes a sentence with names in it: says`${input('best_of')} is ${n}; see ${option('maxBeamWidth')}.` */
export function says(
  words: TemplateStringsArray,
  ...values: (NamedText | Name | number | bigint | undefined)[]
): NamedText {
  const parts: (string | Name)[] = [];
  for (const [i, word] of words.entries()) {
    append(parts, word);
    if (i >= values.length) continue;
    const value = values[i]!;
    if (typeof value === 'object' && 'of' in value) parts.push(value);
    else if (typeof value === 'object') for (const part of value) append(parts, part);
    else append(parts, String(value));
  }
  return parts;
}

function append(parts: (string | Name)[], part: string | Name): void {
  const last = parts.at(-1);
  if (typeof part !== 'string') parts.push(part);
  else if (typeof last === 'string') parts[parts.length - 1] = last + part;
  else if (part !== '') parts.push(part);
}

/** Converts a sentence to words. Without `call` its names are those of the engine. */
export function worded(text: NamedText, call: CallName = ({ name }) => name): string {
  if (typeof text === 'string') return text;
  return text.map((part, i) => (typeof part === 'string' ? part : call(part, i === 0))).join('');
}
