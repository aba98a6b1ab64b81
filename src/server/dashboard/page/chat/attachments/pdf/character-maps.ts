/**
 * The character maps of Chinese, Japanese and Korean fonts that PDF files name and do not have in them, in one file:
 *
 *   length of the index, 4 bytes, low byte first | index: {"H.bcmap": [begin, end], ...} in JSON | the maps, one after the other
 */
export class CharacterMaps {
  readonly #index: ReadonlyMap<string, readonly [begin: number, end: number]>;
  readonly #maps: Uint8Array;

  constructor(file: ArrayBuffer) {
    const length = new DataView(file).getUint32(0, true);
    const index = new TextDecoder().decode(new Uint8Array(file, 4, length));
    this.#index = new Map(Object.entries(JSON.parse(index)));
    this.#maps = new Uint8Array(file, 4 + length);
  }

  /** A map. @throws Error where there is none of this name */
  of(name: string): Uint8Array {
    const place = this.#index.get(name);
    if (place === undefined) throw new Error(`There is no character map ${name}.`);
    return this.#maps.slice(...place);
  }
}

/** What pdf.js asks for files of its own. */
interface DataQuestion {
  kind: string;
  filename: string;
}

/** Answers pdf.js: it gets maps, and nothing that is for drawing. @param load the file with all maps, asked for once it is needed */
export function dataFactory(load: () => Promise<ArrayBuffer>): new () => object {
  let maps: Promise<CharacterMaps> | undefined;
  return class {
    async fetch({ kind, filename }: DataQuestion): Promise<Uint8Array> {
      if (kind !== 'cMapUrl') throw new Error(`${filename} is for drawing, and nothing is drawn.`);
      maps ??= load().then((file) => new CharacterMaps(file));
      return (await maps).of(filename);
    }
  };
}
