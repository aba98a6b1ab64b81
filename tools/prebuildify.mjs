// Compiles the addon for others (npm run prebuildify): prebuilds/<system>-<architecture>/skein.<C library>.node, which
// `npm pack` takes in and node-gyp-build finds where the package is installed. One run makes the one of the machine it
// runs on; the oldest system that is to be served has to make it, since an addon asks for the C and C++ libraries it was made
// with. (With the C++ library in the file it would ask for a newer C library: GCC 12's wants glibc 2.36.)
import { readdirSync, writeFileSync } from 'node:fs';
import { arch, platform } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import prebuildify from 'prebuildify';
import { folderAside, headersFolder, makeAside, removeAbandoned, removeAside } from './build-addon/aside.mjs';
import { prebuiltStampFile } from './build-addon/prebuilt.mjs';
import { say } from './build-addon/say.mjs';
import { portableSourcesHash, stampOf } from './build-addon/stamp.mjs';

const root = join(dirname(fileURLToPath(import.meta.url)), '..');

process.env.JOBS ??= 'max'; // node-gyp's
const headers = headersFolder();
if (headers !== null) process.env.npm_config_nodedir ??= headers;

removeAbandoned(root);
makeAside(root);
try {
  await promisify(prebuildify)({
    cwd: folderAside(root),
    out: root,
    name: 'skein',
    targets: [process.versions.node],
    napi: true,
    tagLibc: true,
    strip: true,
  });
} finally {
  removeAside(root);
}
const folder = join(root, 'prebuilds', `${platform()}-${arch()}`);
const sources = portableSourcesHash(root);
for (const name of readdirSync(folder).filter((file) => file.endsWith('.node'))) {
  const path = join(folder, name);
  writeFileSync(prebuiltStampFile(path), stampOf(sources, path));
  say(`prebuilt ${path}`);
}
