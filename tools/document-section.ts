import { readFileSync, writeFileSync } from 'node:fs';

/** The text with what stands between `<!-- NAME -->` and `<!-- /NAME -->` replaced. @throws where they are missing. */
export function withSection(text: string, name: string, content: string): string {
  const [begin, end] = [`<!-- ${name} -->\n`, `\n<!-- /${name} -->`];
  const from = text.indexOf(begin);
  const to = text.indexOf(end, from);
  if (from < 0 || to < 0)
    throw new Error(`The text has no section between <!-- ${name} --> and <!-- /${name} -->.`);
  return `${text.slice(0, from + begin.length)}\n${content.trim()}\n${text.slice(to)}`;
}

/** Writes a section of a document of this repository, named from its root. */
export function writeSection(document: string, name: string, content: string): void {
  const path = new URL(`../${document}`, import.meta.url);
  writeFileSync(path, withSection(readFileSync(path, 'utf8'), name, content));
}
