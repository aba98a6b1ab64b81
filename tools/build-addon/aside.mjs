// A folder aside in which the addon is compiled: node-gyp builds in the folder of binding.gyp only, and an interrupted
// build must leave what was there before.
import { cpSync, existsSync, mkdirSync, readdirSync, rmSync, symlinkSync } from 'node:fs';
import { dirname, join } from 'node:path';

const MARK = '.build-addon-';

/** Folder in which this process compiles. */
export const folderAside = (root) => join(root, `${MARK}${process.pid}`);

export function makeAside(root) {
  const aside = folderAside(root);
  rmSync(aside, { recursive: true, force: true }); // of an earlier process with this number
  mkdirSync(aside);
  cpSync(join(root, 'binding.gyp'), join(aside, 'binding.gyp'));
  cpSync(join(root, 'package.json'), join(aside, 'package.json'));
  symlinkSync(join(root, 'engine'), join(aside, 'engine'), 'junction');
}

export const removeAside = (root) => rmSync(folderAside(root), { recursive: true, force: true });

/** Removes the folders of builds that were killed. */
export function removeAbandoned(root) {
  for (const name of readdirSync(root)) {
    const pid = name.startsWith(MARK) ? Number(name.slice(MARK.length)) : Number.NaN;
    if (!Number.isInteger(pid) || isAlive(pid)) continue;
    rmSync(join(root, name), { recursive: true, force: true });
  }
}

function isAlive(pid) {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return error.code === 'EPERM';
  }
}

/** The folder above the headers that came with this Node.js, where they did: nothing has to be fetched then. */
export function headersFolder() {
  const prefix = join(dirname(process.execPath), '..');
  return existsSync(join(prefix, 'include', 'node', 'node_api.h')) ? prefix : null;
}
