import type { Random } from '../soak/random.js';
import { DEAR_ROUTES, type Fields, type ModelSizes } from './dear-fields.js';
import { list } from './dear-values.js';
import type { DearRequest } from './measure.js';

/** Requests that are as expensive as they may be, of the fields that the server describes. */
export class DearRequests {
  readonly #sizes: ModelSizes;
  readonly #modelOf: (path: string) => string;
  readonly #fields: ReadonlyMap<string, readonly string[]>;

  /** `fields` by the path of their route. */
  constructor(
    sizes: ModelSizes,
    modelOf: (path: string) => string,
    fields: ReadonlyMap<string, readonly string[]>,
  ) {
    this.#sizes = sizes;
    this.#modelOf = modelOf;
    this.#fields = fields;
  }

  /** Nothing of it is expensive. */
  plain(path: string): DearRequest {
    return this.#request(path, 'plain', {});
  }

  /**
   * A full batch without anything expensive: as many answers as the engine generates at once by default, to
   * prompts of as many tokens as it takes in one iteration. Prompts of another number have nothing in common
   * with these.
   */
  crowd(number: number): DearRequest {
    const tokens = (prompt: number) =>
      list(30, (i) => String(5 + ((number * 31 + prompt * 7 + i * i) % 300)));
    const fields = { prompt: list(63, tokens), max_tokens: '6', ignore_eos: 'true' };
    return this.#request('/v1/completions', 'crowd', fields);
  }

  /** The same where each answer continues a prompt as long as the model takes, which all of them share. */
  longCrowd(): DearRequest {
    const prompt = list(this.#sizes.maxSeqLen - 20, (i) => String(5 + ((i * i) % 300)));
    return this.#request('/v1/completions', 'long crowd', {
      prompt,
      n: '128',
      max_tokens: '6',
      ignore_eos: 'true',
    });
  }

  /** How many there are of one field; each is asked for by its index. */
  count(path: string, field: string): number {
    return this.#values(path, field).length;
  }

  single(path: string, field: string, index: number): DearRequest {
    return this.#request(path, nameOf(field, index), this.#values(path, field)[index]!);
  }

  /** Fields that no route knows. @param length UTF-16 units of each of their names, at least */
  unknown(path: string, count: number, length: number): DearRequest {
    const fields = Array.from({ length: count }, (_, i) => [`${i}`.padEnd(length, 'x'), '1']);
    return this.#request(path, `${count} unknown fields`, Object.fromEntries(fields));
  }

  /** Some expensive fields together: the same for a state of the generator on every machine. */
  random(random: Random): DearRequest {
    const [path] = random.pick([...this.#fields].filter(([, names]) => names.length > 0));
    const names: string[] = [];
    const fields: Record<string, string> = {};
    for (let left = random.integer(2, 5); left > 0; left--) {
      const field = random.pick(this.#fields.get(path)!);
      const values = this.#values(path, field);
      const index = random.integer(0, values.length - 1);
      Object.assign(fields, values[index]);
      names.push(nameOf(field, index));
    }
    return this.#request(path, names.join(' + '), fields);
  }

  #values(path: string, field: string): Fields[] {
    const known = new Set(this.#fields.get(path));
    return DEAR_ROUTES[path]!.fields[field]!(this.#sizes).map((value) => {
      const fields = typeof value === 'string' ? { [field]: value } : value;
      return Object.fromEntries(Object.entries(fields).filter(([name]) => known.has(name)));
    });
  }

  #request(path: string, name: string, fields: Fields): DearRequest {
    const all = { ...DEAR_ROUTES[path]!.plain, ...fields, model: JSON.stringify(this.#modelOf(path)) };
    const text = Object.entries(all).map(([field, value]) => `${JSON.stringify(field)}:${value}`);
    const isLong = 'n' in fields && (fields.prompt?.length ?? 0) > 1.7 * this.#sizes.maxSeqLen;
    return { name: `${path} ${name}`, path, body: Buffer.from(`{${text.join()}}`), isLong };
  }
}

function nameOf(field: string, index: number): string {
  return index === 0 ? field : `${field} (${index + 1})`;
}
