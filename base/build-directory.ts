import { randomBytes } from 'node:crypto';
import { existsSync, mkdirSync, readdirSync, renameSync, rmSync, statSync } from 'node:fs';
import { basename, dirname, join, resolve } from 'node:path';

// Directories in which something is being built. Each lies next to its target, so that renaming it into place
// is one step of the file system; on an error or a signal it is removed, so that nothing half-written stays.

const open = new Set<string>();
const SIGNALS = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const;
const MARK = '.building-';
const GONE_AFTER_MS = 10 * 60 * 1000;
const ABANDONED_AFTER_MS = 24 * 60 * 60 * 1000;

/** Makes a directory `.NAME.building-PID-RANDOM` next to the target. */
export function makeBuildDirectory(target: string): string {
  const parent = dirname(resolve(target));
  makeFolders(parent);
  removeAbandoned(parent);
  const name = `.${basename(target)}${MARK}${process.pid}-${randomBytes(6).toString('hex')}`;
  const directory = join(parent, name);
  mkdirSync(directory);
  removeOnExit(directory);
  return directory;
}

/**
 * Makes folders one level at a time: Node's recursive mkdir never returns where the file system answers ENOENT, as
 * /proc does.
 */
function makeFolders(path: string): void {
  if (existsSync(path)) return;
  makeFolders(dirname(path));
  try {
    mkdirSync(path);
  } catch (error) {
    // Another process may have made the folder in between.
    if (!existsSync(path)) throw error;
  }
}

export function discardBuildDirectory(directory: string): void {
  rmSync(directory, { recursive: true, force: true });
  keepOnExit(directory);
}

/** Renames the directory to the target. Returns false where the target exists and is not empty. */
export function publishBuildDirectory(directory: string, target: string): boolean {
  try {
    renameSync(directory, target);
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === 'ENOTEMPTY' || code === 'EEXIST') return false;
    throw error;
  }
  keepOnExit(directory);
  return true;
}

/**
 * The same where the target may exist: it is put aside by a rename and then removed, so that who has it open keeps its files.
 * False where another process made one in between.
 */
export function replaceByBuild(directory: string, target: string): boolean {
  if (existsSync(target)) {
    const old = join(dirname(target), `.${basename(target)}.old-${process.pid}`);
    renameSync(target, old);
    rmSync(old, { recursive: true, force: true });
  }
  return publishBuildDirectory(directory, target);
}

/** Has a file or directory removed should the process end, by a signal too, before keepOnExit. */
export function removeOnExit(path: string): void {
  if (open.size === 0) listen();
  open.add(path);
}

export function keepOnExit(path: string): void {
  if (open.delete(path) && open.size === 0) unlisten();
}

function removeAll(): void {
  for (const path of open) rmSync(path, { recursive: true, force: true });
}

/**
 * Removes the directories under construction; then, unless the program handles the signal itself, lets it end the
 * process.
 */
function onSignal(signal: NodeJS.Signals): void {
  removeAll();
  if (process.listenerCount(signal) > 1) return;
  process.off(signal, onSignal);
  process.kill(process.pid, signal);
}

function listen(): void {
  for (const signal of SIGNALS) process.on(signal, onSignal);
  process.on('exit', removeAll);
}

function unlisten(): void {
  for (const signal of SIGNALS) process.off(signal, onSignal);
  process.off('exit', removeAll);
}

/** Removes build directories whose process is gone (killed outright) or that are a day old. */
function removeAbandoned(parent: string): void {
  for (const name of readdirSync(parent)) {
    const pid = new RegExp(`^\\..*\\${MARK}(\\d+)-[0-9a-f]{12}$`).exec(name)?.[1];
    if (pid === undefined) continue;
    const path = join(parent, name);
    const age = Date.now() - (statSync(path, { throwIfNoEntry: false })?.mtimeMs ?? 0);
    const isGone = age > GONE_AFTER_MS && !isAlive(Number(pid)); // only processes of this machine are known, and a cache may be shared
    if (isGone || age > ABANDONED_AFTER_MS) rmSync(path, { recursive: true, force: true });
  }
}

/** True where a process of this machine runs, even one of another user. */
export function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EPERM';
  }
}
