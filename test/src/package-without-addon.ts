import { cpSync, mkdirSync, symlinkSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

/** Most of the files, and not read here. */
const UNUSED = /\.(map|d\.ts)$/;

/**
 * Makes a copy of the built package as it is installed where no compiler was found: everything but the addon.
 * @returns the path of its command line.
 */
export function packageWithoutAddon(folder: string): string {
  const root = fileURLToPath(new URL('../..', import.meta.url));
  mkdirSync(folder, { recursive: true });
  for (const name of ['dist', 'package.json', 'binding.gyp', 'models/demo']) {
    cpSync(join(root, name), join(folder, name), { recursive: true, filter: (file) => !UNUSED.test(file) });
  }
  symlinkSync(join(root, 'node_modules'), join(folder, 'node_modules'));
  return join(folder, 'dist/bin/skein.js');
}
