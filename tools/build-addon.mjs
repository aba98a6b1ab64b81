// Builds the native addon with node-gyp. As npm's install script it must not fail the installation:
// without a compiler the package still installs, and `skein serve` says what is missing.
// With --required (npm run build:native) a failed build is an error.
import { spawnSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

const required = process.argv.includes('--required');
const root = join(dirname(fileURLToPath(import.meta.url)), '..');

function nodeGyp() {
  const require = createRequire(import.meta.url);
  try {
    return require.resolve('node-gyp/bin/node-gyp.js');
  } catch {
    return process.env.npm_config_node_gyp; // the copy that npm itself carries
  }
}

function headersBesideNode() {
  const prefix = join(dirname(process.execPath), '..');
  return existsSync(join(prefix, 'include', 'node', 'node_api.h')) ? [`--nodedir=${prefix}`] : [];
}

function giveUp(reason) {
  const message = `skein: the native addon was not built (${reason}). It needs a C++20 compiler, make and Python 3: on Debian or Ubuntu "apt-get install g++ make python3", on Fedora "dnf install gcc-c++ make python3"; then run "npm rebuild skein", or "npm run build:native" in a checkout.`;
  console.error(message);
  process.exit(required ? 1 : 0);
}

const gyp = nodeGyp();
if (!gyp) giveUp('node-gyp was not found');
const result = spawnSync(process.execPath, [gyp, 'rebuild', '-j', 'max', ...headersBesideNode()], {
  cwd: root,
  stdio: required ? 'inherit' : ['ignore', 'pipe', 'pipe'],
  encoding: 'utf8',
});
if (result.status !== 0) {
  const lines = `${result.stderr ?? ''}`
    .split('\n')
    .filter((line) => /error|not found|gyp ERR! stack/i.test(line));
  giveUp(lines[0]?.trim() || `node-gyp ended with status ${result.status}`);
}
