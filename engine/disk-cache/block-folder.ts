import * as fs from 'node:fs';
import { join } from 'node:path';
import { messageOf } from '../../base/error-text.js';
import type { PromptBlocks } from '../../kvcache/block-hashes.js';
import {
  type BlockFormat,
  blockFileName,
  blockPrefix,
  CHECKSUM_BYTES,
  checksumOf,
  type DiskKey,
  isUnfinished,
  parseName,
  unfinishedName,
} from './block-file.js';
import type { DiskUsage, WrittenBlock } from './disk-messages.js';
import { FolderIndex } from './folder-index.js';
import { FOLDER_MODE, makeFolder } from './make-folder.js';

/** Most files of a folder: what listing and looking at them costs at the start is bounded. */
const MAX_FILES = 100_000;
/** A file that stayed unfinished for this long was left by a process that died. */
const UNFINISHED_MS = 600_000;
/** After a write that failed, nothing is written for so long. */
const WRITE_PAUSE_MS = 60_000;
/** The time of use in a file's own record may lag by this much. */
const TOUCH_MS = 60_000;
/** The folder is listed again when this share of its limit has been written, since others may write to it too. */
const LISTED_AGAIN = 1 / 16;

/** Neither through a link nor from a pipe, which would keep the thread waiting. */
const FOR_READING = fs.constants.O_RDONLY | fs.constants.O_NOFOLLOW | fs.constants.O_NONBLOCK;

export type FileCalls = Pick<
  typeof fs,
  | 'closeSync'
  | 'fstatSync'
  | 'futimesSync'
  | 'lstatSync'
  | 'mkdirSync'
  | 'openSync'
  | 'readdirSync'
  | 'readvSync'
  | 'renameSync'
  | 'statSync'
  | 'unlinkSync'
  | 'utimesSync'
  | 'writevSync'
>;

export interface FolderOptions extends BlockFormat, PathOptions {
  /** Called with what went wrong, once for each kind. The message is a sentence. */
  onProblem(message: string): void;
  /** Milliseconds since the epoch; default: Date.now. */
  clock?: () => number;
  files?: FileCalls;
}

/**
 * What became of a read: `gone` where the file is not there or cannot be read, `other` where it is another block, whose name is the same
 * by accident.
 */
export type FoundBlock = 'whole' | 'damaged' | 'gone' | 'other';

interface PathOptions {
  path: string;
  maxBytes: number;
  maxFiles?: number;
}

/**
 * Blocks in the files of a folder, each in one of its own. A file is written under another name and then renamed, so that none is ever
 * seen half; one that is damaged is removed when it is read. Several processes may use one folder: each counts the files of all, and
 * one that finds a file gone takes it for a miss. Room is made before a file is written, and unfinished files
 * count too, so that a process that is killed leaves no more than the limit. A folder that is removed
 * meanwhile is made once more, but not the folders above it: they may be where a disk was. Nothing here
 * throws: what cannot be written or read is counted, and reported once.
 */
export class BlockFolder {
  readonly #options: FolderOptions;
  readonly #files: FileCalls;
  readonly #clock: () => number;
  readonly #index: FolderIndex;
  readonly #writer = `${process.pid}-${Math.random().toString(36).slice(2, 10)}`;
  readonly #told = new Set<string>();
  readonly #counts = { damaged: 0, errors: 0 };
  /** Keys of the engine's own files that have gone since takeGone was last called. */
  readonly #gone = new Set<DiskKey>();
  #writesFromMs = 0;
  #writtenBytes = 0;

  constructor(options: FolderOptions) {
    this.#options = options;
    this.#files = options.files ?? fs;
    this.#clock = options.clock ?? Date.now;
    this.#index = new FolderIndex({ maxBytes: options.maxBytes, maxFiles: options.maxFiles ?? MAX_FILES });
  }

  get usage(): DiskUsage {
    return { files: this.#index.numFiles, bytes: this.#index.bytes, ...this.#counts };
  }

  /** Makes the folder if there is none, and looks at its files. @returns keys of the engine's own files */
  open(): DiskKey[] {
    if (!this.#attempt('cannot be made', () => makeFolder(this.#options.path, this.#files))) {
      this.#writesFromMs = Number.POSITIVE_INFINITY;
      return [];
    }
    this.#list();
    this.#removeAll(this.#index.overflow());
    this.#gone.clear();
    return this.#own();
  }

  /** Writes a block. False: it could not be, there is no room for it, or nothing is written at the moment. */
  write(block: WrittenBlock, content: Uint8Array): boolean {
    const nowMs = this.#clock();
    const name = blockFileName(this.#options, block.key);
    if (this.#index.has(name)) return true;
    if (nowMs < this.#writesFromMs) return false;
    const prefix = blockPrefix(this.#options, block.key, block);
    const entry = {
      bytes: prefix.length + content.length + CHECKSUM_BYTES,
      usedMs: nowMs - depthOf(block),
    };
    const going = this.#index.overflowWith(entry);
    if (going === null) return false;
    this.#removeAll(going);
    const parts = [prefix, content, checksumOf(prefix, content)];
    if (!this.#attempt('cannot be written to', () => this.#writeWhole(name, parts, entry.usedMs))) {
      this.#writesFromMs = nowMs + WRITE_PAUSE_MS;
      return false;
    }
    this.#index.add(name, entry);
    this.#gone.delete(block.key);
    this.#writtenBytes += entry.bytes;
    return true;
  }

  /** Looks now and then at what others have written, and keeps the files of all to their limits. */
  keepToLimits(): void {
    if (this.#writtenBytes < LISTED_AGAIN * this.#options.maxBytes) return;
    const before = this.#own();
    this.#list();
    this.#removeAll(this.#index.overflow());
    const now = new Set(this.#own());
    for (const key of before) if (!now.has(key)) this.#gone.add(key);
  }

  /** Keys of the engine's own files that had to go, or that others have removed, since this was last called. */
  takeGone(): DiskKey[] {
    const gone = [...this.#gone];
    this.#gone.clear();
    return gone;
  }

  /** Reads the block of the chain into `content`. Whatever is not `whole` is of no use, and what is `damaged` is removed. */
  read(chain: PromptBlocks, key: DiskKey, content: Uint8Array): FoundBlock {
    const name = blockFileName(this.#options, key);
    const prefix = blockPrefix(this.#options, key, chain);
    const found = this.#readWhole(name, prefix, content);
    if (found === 'whole') this.#touch(name, this.#clock() - depthOf(chain));
    else if (found === 'damaged') this.#removeDamaged(name);
    else if (found === 'gone') this.#noteGone(name);
    return found;
  }

  /** Removes files of this engine, whose blocks will be written once more. */
  drop(keys: readonly DiskKey[]): void {
    for (const key of keys) this.#remove(blockFileName(this.#options, key));
  }

  /** Marks the blocks of a chain as used, the first one last. */
  touch(keys: readonly DiskKey[]): void {
    const nowMs = this.#clock();
    for (const [depth, key] of keys.entries()) this.#touch(blockFileName(this.#options, key), nowMs - depth);
  }

  /** Removes all files of this engine, and unfinished ones. */
  erase(): void {
    for (const name of this.#namesInFolder()) {
      const isOwn = parseName(name)?.identity === this.#ownIdentity;
      if (!isOwn && !(isUnfinished(name) && name.startsWith(this.#ownIdentity))) continue;
      this.#remove(name);
    }
  }

  get #ownIdentity(): string {
    return this.#options.identity.slice(0, 16);
  }

  #own(): DiskKey[] {
    const keys: DiskKey[] = [];
    for (const name of this.#index.names) {
      const parsed = parseName(name);
      if (parsed?.identity === this.#ownIdentity) keys.push(parsed.key);
    }
    return keys;
  }

  #list(): void {
    const known = this.#index.clear();
    this.#writtenBytes = 0;
    for (const name of this.#namesInFolder()) {
      const isWhole = parseName(name) !== null;
      if (!isWhole && !isUnfinished(name)) continue;
      try {
        const entry = this.#files.lstatSync(join(this.#options.path, name));
        if (!entry.isFile()) continue;
        const { size, mtimeMs } = entry;
        // The record in the file lags: see TOUCH_MS.
        const usedMs = Math.max(mtimeMs, known.get(name)?.usedMs ?? 0);
        this.#index.add(name, { bytes: size, usedMs });
        if (!isWhole && mtimeMs < this.#clock() - UNFINISHED_MS) this.#remove(name);
      } catch {
        // Another process has removed it.
      }
    }
  }

  #namesInFolder(): string[] {
    let names: string[] = [];
    this.#attempt('cannot be listed', () => {
      names = this.#files.readdirSync(this.#options.path);
    });
    return names;
  }

  #removeAll(names: readonly string[]): void {
    for (const name of names) this.#remove(name);
  }

  #writeWhole(name: string, parts: readonly Uint8Array[], usedMs: number): void {
    const path = join(this.#options.path, name);
    const aside = unfinishedName(path, this.#writer);
    const file = this.#openNew(aside);
    try {
      try {
        writeAll(this.#files, file, parts);
        this.#files.futimesSync(file, usedMs / 1000, usedMs / 1000);
      } finally {
        this.#files.closeSync(file);
      }
      this.#files.renameSync(aside, path);
    } catch (error) {
      this.#quietly(() => this.#files.unlinkSync(aside));
      throw error;
    }
  }

  #openNew(path: string): number {
    const open = () => this.#files.openSync(path, 'wx', 0o600);
    try {
      return open();
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error;
    }
    this.#files.mkdirSync(this.#options.path, { mode: FOLDER_MODE });
    this.#forgetAll();
    this.#tell('removed', `The KV cache's folder ${this.#options.path} was removed, and is made once more.`);
    return open();
  }

  /** The folder is gone, with all that was in it. */
  #forgetAll(): void {
    for (const key of this.#own()) this.#gone.add(key);
    this.#index.clear();
  }

  /** A file that should be there is not: where the folder is gone too, so are all others. */
  #noteGone(name: string): void {
    this.#forget(name);
    try {
      this.#files.statSync(this.#options.path);
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === 'ENOENT') this.#forgetAll();
    }
  }

  #readWhole(name: string, prefix: Buffer, content: Uint8Array): FoundBlock {
    let file: number;
    try {
      file = this.#files.openSync(join(this.#options.path, name), FOR_READING);
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'ENOENT') this.#note('cannot be read', error);
      return 'gone';
    }
    const read = Buffer.alloc(prefix.length);
    const sum = Buffer.alloc(CHECKSUM_BYTES);
    try {
      const expected = prefix.length + content.length + CHECKSUM_BYTES;
      const { size } = this.#files.fstatSync(file);
      if (size !== expected || !readAll(this.#files, file, [read, content, sum])) return 'damaged';
    } catch (error) {
      this.#note('cannot be read', error);
      return 'gone';
    } finally {
      this.#quietly(() => this.#files.closeSync(file));
    }
    if (!checksumOf(read, content).equals(sum)) return 'damaged';
    return read.equals(prefix) ? 'whole' : 'other';
  }

  #removeDamaged(name: string): void {
    this.#counts.damaged += 1;
    this.#remove(name);
    this.#tell(
      'damaged',
      `The KV cache's folder ${this.#options.path} holds damaged files, such as ${name}; they are removed, and their prompts computed.`,
    );
  }

  #touch(name: string, usedMs: number): void {
    const before = this.#index.touch(name, usedMs);
    if (before === null || usedMs - before < TOUCH_MS) return;
    this.#quietly(() => this.#files.utimesSync(join(this.#options.path, name), usedMs / 1000, usedMs / 1000));
  }

  #remove(name: string): void {
    this.#forget(name);
    try {
      this.#files.unlinkSync(join(this.#options.path, name));
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'ENOENT')
        this.#note('holds files that cannot be removed', error);
    }
  }

  #forget(name: string): void {
    this.#index.remove(name);
    const parsed = parseName(name);
    if (parsed?.identity === this.#ownIdentity) this.#gone.add(parsed.key);
  }

  #attempt(what: string, call: () => void): boolean {
    try {
      call();
      return true;
    } catch (error) {
      this.#note(what, error);
      return false;
    }
  }

  #quietly(call: () => void): void {
    try {
      call();
    } catch {
      // What it was for is lost, and nothing else.
    }
  }

  #note(what: string, error: unknown): void {
    this.#counts.errors += 1;
    this.#tell(
      what,
      `The KV cache's folder ${this.#options.path} ${what}: ${messageOf(error)}. The engine goes on without.`,
    );
  }

  #tell(kind: string, message: string): void {
    if (this.#told.has(kind)) return;
    this.#told.add(kind);
    this.#options.onProblem(message);
  }
}

/** Later blocks of a chain count as used a little earlier, so that tails go before heads. */
function depthOf({ tokens }: PromptBlocks): number {
  return tokens.length;
}

function writeAll(files: FileCalls, file: number, parts: readonly Uint8Array[]): void {
  let left = [...parts];
  while (left.length > 0) {
    left = without(left, files.writevSync(file, left));
  }
}

/** Fills the parts; false: the file is shorter. */
function readAll(files: FileCalls, file: number, parts: readonly Uint8Array[]): boolean {
  let left = without(parts, 0);
  while (left.length > 0) {
    const numRead = files.readvSync(file, left);
    if (numRead === 0) return false;
    left = without(left, numRead);
  }
  return true;
}

/** What is left of the parts after their first `bytes`. */
function without(parts: readonly Uint8Array[], bytes: number): Uint8Array[] {
  let skipped = bytes;
  const left: Uint8Array[] = [];
  for (const part of parts) {
    const skippedHere = Math.min(skipped, part.length);
    skipped -= skippedHere;
    if (skippedHere < part.length) left.push(part.subarray(skippedHere));
  }
  return left;
}
