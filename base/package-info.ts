import { existsSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

/** The package's folder: above engine/ in the sources, above dist/engine/ in the installed package. */
export function packageRoot(): string {
  const here = dirname(fileURLToPath(import.meta.url));
  for (let folder = here; ; folder = dirname(folder)) {
    if (existsSync(join(folder, 'binding.gyp'))) return folder;
    if (folder === dirname(folder)) throw new Error(`No package of skein around ${here}.`);
  }
}

let version: string | undefined;

/** Version of the package, from package.json. */
export function skeinVersion(): string {
  version ??= (JSON.parse(readFileSync(join(packageRoot(), 'package.json'), 'utf8')) as { version: string })
    .version;
  return version;
}
