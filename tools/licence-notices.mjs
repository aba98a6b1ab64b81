import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { dirname, join, relative } from 'node:path';
import { fileURLToPath } from 'node:url';

const root = join(dirname(fileURLToPath(import.meta.url)), '..');

/** The licence of each library that has a file among these, which are relative to the project. */
export function notices(files) {
  const folders = new Set(files.map(packageFolder).filter((folder) => folder !== null));
  const texts = [...folders].sort().map((folder) => {
    const { name, version, license } = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8'));
    const file = readdirSync(folder).find((entry) => /^licen[cs]e/i.test(entry));
    const text = file === undefined ? `Licence: ${license}` : readFileSync(join(folder, file), 'utf8').trim();
    return `${name} ${version}\n\n${text}\n`;
  });
  return texts.join(`\n${'-'.repeat(80)}\n\n`);
}

/** The folder of the package that a file of node_modules belongs to; null for files of Skein. */
function packageFolder(file) {
  const path = join(root, file);
  if (!path.includes('/node_modules/')) return null;
  for (let folder = dirname(path); ; folder = dirname(folder)) {
    const manifest = join(folder, 'package.json');
    // Packages may hold a package.json for a folder of theirs, which has no version.
    if (existsSync(manifest) && JSON.parse(readFileSync(manifest, 'utf8')).version !== undefined)
      return folder;
    if (folder === root) throw new Error(`${relative(root, path)} belongs to no package.`);
  }
}
