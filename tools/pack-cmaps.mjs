// The character maps of pdf.js in one file, as src/server/dashboard/page/chat/attachments/pdf/character-maps.ts reads it.
import { readdirSync, readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';

const folder = join(dirname(createRequire(import.meta.url).resolve('pdfjs-dist/package.json')), 'cmaps');

/** Those that PDF knows by name, and those that these need: it has none over UTF-8 and UTF-32. */
const isNamedInFiles = (name) => name.endsWith('.bcmap') && !/UTF(8|32)/.test(name);

/** The licence of the maps, which is not that of pdf.js. */
export const cmapsLicence = () =>
  `${'-'.repeat(80)}\n\nCharacter maps of Adobe, from pdfjs-dist\n\n${readFileSync(join(folder, 'LICENSE'), 'utf8').trim()}\n`;

/** @returns {Buffer} */
export function packedCMaps() {
  const names = readdirSync(folder).filter(isNamedInFiles).sort();
  const maps = names.map((name) => readFileSync(join(folder, name)));
  let end = 0;
  const places = maps.map(({ length }) => {
    end += length;
    return [end - length, end];
  });
  const index = Buffer.from(JSON.stringify(Object.fromEntries(names.map((name, i) => [name, places[i]]))));
  const length = Buffer.alloc(4);
  length.writeUInt32LE(index.length);
  return Buffer.concat([length, index, ...maps]);
}
