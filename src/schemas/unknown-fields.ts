/** Name of the response header that lists unknown fields. */
export const UNKNOWN_FIELDS_HEADER = 'X-Unknown-Fields';

/** Longest list, in bytes: proxies take only so much of all headers. */
const MAX_LIST = 1024;
/** Most characters of a name in the list. */
const MAX_NAME = 200;
/** Room for the words about names that are left out. */
const REST = 32;

/** The unknown fields of one body: a list of bounded length, and their number. */
export class UnknownFields {
  #list = '';
  #isFull = false;
  #count = 0;
  #listed = 0;

  get count(): number {
    return this.#count;
  }

  /** @param path makes the field's path; called only where the list has room for it */
  add(path: () => string): void {
    this.#count++;
    if (this.#isFull) return;
    const name = escaped(path());
    const longer = this.#list === '' ? name : `${this.#list}, ${name}`;
    if (longer.length > MAX_LIST - REST) {
      this.#isFull = true;
      return;
    }
    this.#list = longer;
    this.#listed++;
  }

  /** The list, in ASCII and at most 1024 bytes long: `foo, messages[0].bar, and 7 more`. */
  get text(): string {
    const more = this.#count - this.#listed;
    if (more === 0) return this.#list;
    return this.#list === '' ? `${more} fields` : `${this.#list}, and ${more} more`;
  }
}

/** A client's name as a header and a log may have it: everything unusual is percent-encoded, as in addresses. */
function escaped(path: string): string {
  const short = path.length > MAX_NAME ? `${path.slice(0, MAX_NAME)}...` : path;
  const wellFormed = short.replaceAll(/\p{Surrogate}/gu, '\ufffd');
  return wellFormed.replaceAll(/[^\w.$@:[\]-]/gu, (character) =>
    character.codePointAt(0)! < 0x80
      ? `%${character.codePointAt(0)!.toString(16).toUpperCase().padStart(2, '0')}`
      : encodeURIComponent(character),
  );
}
