import {
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { dirname, join, relative } from 'node:path';
import type { Repository } from './repository.js';

const COMMIT = /^[0-9a-f]{40}$/;

/**
 * Downloaded files of a repository, in the layout that all tools of the Hugging Face hub share, so that each finds what
 * another has downloaded (huggingface_hub, "Understand caching"):
 *
 *   models--ORG--NAME/
 *     refs/main                     the commit that main was at
 *     blobs/<hash>                  contents, each once
 *     snapshots/<commit>/<path>  -> ../../blobs/<hash>
 */
export class RepositoryCache {
  readonly folder: string;

  constructor(cacheFolder: string, { id }: Repository) {
    this.folder = join(cacheFolder, `models--${id.replace('/', '--')}`);
  }

  blob(hash: string): string {
    return join(this.folder, 'blobs', hash);
  }

  snapshot(commit: string): string {
    return join(this.folder, 'snapshots', commit);
  }

  /** Commit of a branch or tag when it was last asked for; null where it never was. */
  commitOf(revision: string): string | null {
    if (COMMIT.test(revision)) return revision;
    try {
      const commit = readFileSync(this.#ref(revision), 'utf8').trim();
      return COMMIT.test(commit) ? commit : null;
    } catch {
      return null;
    }
  }

  /** Paths of the commit's files whose contents are in the cache. */
  filesOf(commit: string): string[] {
    const root = this.snapshot(commit);
    const found: string[] = [];
    const walk = (folder: string, prefix: string) => {
      for (const { name } of readdirSync(folder, { withFileTypes: true })) {
        const status = statSync(join(folder, name), { throwIfNoEntry: false });
        if (status?.isDirectory()) walk(join(folder, name), `${prefix}${name}/`);
        else if (status?.isFile()) found.push(`${prefix}${name}`);
      }
    };
    if (statSync(root, { throwIfNoEntry: false })?.isDirectory()) walk(root, '');
    return found.sort();
  }

  /** Links a blob under its path in a commit. */
  link(commit: string, path: string, hash: string): void {
    const pointer = join(this.snapshot(commit), path);
    mkdirSync(dirname(pointer), { recursive: true });
    if (statSync(pointer, { throwIfNoEntry: false }) !== undefined) return;
    // A link stays even after its blob was deleted.
    if (lstatSync(pointer, { throwIfNoEntry: false }) !== undefined) rmSync(pointer);
    symlinkSync(relative(dirname(pointer), this.blob(hash)), pointer);
  }

  /** Notes the commit of a branch or tag, once all its files are in the cache. */
  noteCommit(revision: string, commit: string): void {
    if (COMMIT.test(revision)) return;
    const ref = this.#ref(revision);
    mkdirSync(dirname(ref), { recursive: true });
    writeFileSync(ref, commit);
  }

  #ref(revision: string): string {
    return join(this.folder, 'refs', revision);
  }
}
