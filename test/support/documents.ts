import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

export const repository = fileURLToPath(new URL('../..', import.meta.url));

/** Text of a document, by its path in the repository. */
export const readDocument = (path: string): string => readFileSync(join(repository, path), 'utf8');

/** Code blocks of a language in a document, in order. */
export function codeBlocks(path: string, language: string): string[] {
  const pattern = new RegExp(`^\`\`\`${language}\\n([\\s\\S]*?)^\`\`\``, 'gm');
  return Array.from(readDocument(path).matchAll(pattern), (match) => match[1]!);
}

const NO_DOCUMENTS_THERE = new Set(['node_modules', 'dist', 'build', 'goldens', 'fixtures', '.venv']);

/** Paths of all Markdown documents of the repository. */
export function allDocuments(folder = ''): string[] {
  return readdirSync(join(repository, folder), { withFileTypes: true }).flatMap((entry) => {
    const path = folder === '' ? entry.name : `${folder}/${entry.name}`;
    if (entry.isDirectory()) {
      return NO_DOCUMENTS_THERE.has(entry.name) || entry.name.startsWith('.') ? [] : allDocuments(path);
    }
    return entry.name.endsWith('.md') ? [path] : [];
  });
}

/** A document without its code blocks, where `#` and brackets mean something else. */
export const proseOf = (path: string): string => readDocument(path).replaceAll(/^ *```[\s\S]*?^ *```/gm, '');

/** The anchors that GitHub gives the headings of a document. */
export function anchorsOf(path: string): Set<string> {
  const anchors = new Set<string>();
  for (const [, heading] of proseOf(path).matchAll(/^#{1,6} +(.+?) *$/gm)) {
    const text = heading!.replaceAll(/\[([^\]]*)\]\([^)]*\)/g, '$1');
    const slug = text
      .toLowerCase()
      .replaceAll(/[^\p{L}\p{N}\p{M}_ -]/gu, '')
      .replaceAll(' ', '-');
    let anchor = slug;
    for (let again = 1; anchors.has(anchor); again++) anchor = `${slug}-${again}`;
    anchors.add(anchor);
  }
  return anchors;
}

export interface DocumentLink {
  from: string;
  target: string;
}

/** Links and pictures of a document that lead into the repository: relative ones, and anchors. */
export function relativeLinks(path: string): DocumentLink[] {
  const prose = proseOf(path).replaceAll(/`[^`\n]*`/g, '');
  const inline = Array.from(
    prose.matchAll(/\]\(\s*<?([^)\s>]+)>?(?:\s+"[^"]*")?\s*\)/g),
    (match) => match[1]!,
  );
  const html = Array.from(prose.matchAll(/\b(?:src|srcset|href)="([^"]+)"/g), (match) => match[1]!);
  return [...inline, ...html]
    .filter((target) => !/^[a-z]+:/i.test(target))
    .map((target) => ({ from: path, target }));
}
