// npm run native-packages: makes the folders of the packages, and what npm would publish of each as a file:
//
//     .native-packages/skein-native-linux-x64-glibc-0.1.0.tgz, skein-0.1.0.tgz
//
// "npm install" of both files in a project installs Skein without compiling. "npm run release" publishes the folders.
import { execFileSync } from 'node:child_process';
import { statSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { makePackages } from './make-packages.mjs';

const root = fileURLToPath(new URL('../..', import.meta.url));
const target = join(root, '.native-packages');

try {
  for (const { name, folder } of makePackages(root, target)) {
    const output = execFileSync('npm', ['pack', '--ignore-scripts', '--json', '--pack-destination', target], {
      cwd: folder,
      encoding: 'utf8',
      stdio: ['ignore', 'pipe', 'inherit'],
      maxBuffer: 64 * 2 ** 20,
    });
    const [{ filename }] = JSON.parse(output);
    const file = join(target, filename.replace('@', '').replace('/', '-'));
    console.log(`${name}: ${file} (${(statSync(file).size / 1e6).toFixed(1)} MB)`);
  }
} catch (error) {
  console.error(`native-packages: ${error.message}`);
  process.exitCode = 1;
}
