import { mkdirSync, statfsSync, statSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { ProcessLock } from '../../base/process-lock.js';
import { writeReason } from '../../base/system-problem.js';
import { HubError } from '../errors/user-errors.js';
import { RepositoryCache } from './cache.js';
import { A_MODEL, type Wanted } from './chosen-files.js';
import { download } from './download.js';
import type { RemoteFile, RemoteRepository } from './hub-client.js';
import type { Repository } from './repository.js';
import type { HubSettings } from './settings.js';

export interface PullProgress {
  /** The repository, ORG/NAME. */
  id: string;
  /** Path of the file that is being downloaded. */
  path: string;
  /** Number of bytes of all files that are here; `total`: of all bytes. */
  done: number;
  total: number;
  /** Number of bytes that were here before. */
  kept: number;
  /** The file that is being downloaded. */
  file: FileProgress;
}

export interface FileProgress {
  hash: string;
  algorithm: 'sha256' | 'sha1';
  size: number;
  /** Number of its bytes that are here. */
  done: number;
}

export interface PullOptions {
  settings: HubSettings;
  /** Branch, tag or commit. */
  revision: string;
  /** Default: a model. */
  wanted?: Wanted;
  onProgress?: ((progress: PullProgress) => void) | undefined;
  /** Called once, where another process is downloading the same repository. */
  onWait?: (() => void) | undefined;
  signal?: AbortSignal | undefined;
  /** Bytes of the disk that other downloads of this process will take; default: 0. */
  awaitedBytes?: () => number;
  fetch?: typeof fetch;
  retryDelayMs?: number;
}

/** A model in the cache. */
export interface PulledModel {
  id: string;
  commit: string;
  /** Path to load: the folder, or the GGUF file in it. */
  path: string;
  /** Size of its files, in bytes. */
  bytes: number;
  /** Number of these bytes that were downloaded now. */
  downloadedBytes: number;
}

/** Downloads a model's files that are not in the cache yet, at the revision's present commit. @throws HubError. */
export async function pull(repository: Repository, options: PullOptions): Promise<PulledModel> {
  const { settings, revision, wanted = A_MODEL, signal } = options;
  if (settings.isOffline) {
    throw new HubError(
      `${repository.id} is not complete in ${settings.cacheFolder}, and HF_HUB_OFFLINE forbids to ask for it.`,
    );
  }
  const { askHub } = await import('./hub-client.js');
  const remote = await askHub(repository, revision, settings, {
    fetch: options.fetch ?? fetch,
    signal,
    retryDelayMs: options.retryDelayMs,
  });
  const { paths, gguf } = wanted.choose(
    remote.files.map(({ path }) => path),
    repository,
  );
  const cache = new RepositoryCache(settings.cacheFolder, repository);
  const files = paths.map((path) => remote.files.find((file) => file.path === path)!);
  const downloadedBytes = await writing(cache.folder, async () => {
    const lock = await lockOf(cache, options);
    try {
      const onProgress = (progress: PullProgress) => {
        lock.touch();
        options.onProgress?.(progress);
      };
      return await fetchFiles(files, remote, cache, repository, { ...options, onProgress });
    } finally {
      lock.release();
    }
  });
  cache.noteCommit(revision, remote.commit);
  const folder = cache.snapshot(remote.commit);
  const bytes = files.reduce((sum, { size }) => sum + size, 0);
  const path = gguf === null ? folder : join(folder, gguf);
  return { id: repository.id, commit: remote.commit, path, bytes, downloadedBytes };
}

/**
 * Takes the cache's lock: two processes that append to the same file would spoil it, so the second one waits, and then
 * finds the files of the first.
 */
async function lockOf(cache: RepositoryCache, { signal, onWait }: PullOptions): Promise<ProcessLock> {
  mkdirSync(join(cache.folder, 'blobs'), { recursive: true });
  return ProcessLock.take(join(cache.folder, '.skein.lock'), () => onWait?.(), signal);
}

async function fetchFiles(
  files: readonly RemoteFile[],
  { commit }: RemoteRepository,
  cache: RepositoryCache,
  { id }: Repository,
  { settings, onProgress, signal, fetch: fetchWith = fetch, retryDelayMs, awaitedBytes }: PullOptions,
): Promise<number> {
  const total = files.reduce((sum, { size }) => sum + size, 0);
  const kept = files.reduce((sum, file) => sum + bytesThere(cache, file), 0);
  checkRoom(cache.folder, id, total - kept, awaitedBytes?.() ?? 0);
  const headers = settings.token === null ? {} : { authorization: `Bearer ${settings.token}` };
  let before = 0;
  for (const { path, size, hash, checksum } of files) {
    const blob = cache.blob(hash);
    const algorithm = checksum.algorithm === 'sha256' ? 'sha256' : 'sha1';
    const report = (bytes: number) => {
      const file: FileProgress = { hash, algorithm, size, done: bytes };
      onProgress?.({ id, path, done: before + bytes, total, kept, file });
    };
    if (statSync(blob, { throwIfNoEntry: false })?.size === size) report(size);
    else {
      const url = `${settings.endpoint}/${id}/resolve/${commit}/${path.split('/').map(encodeURIComponent).join('/')}`;
      await download({ name: `${id}/${path}`, url, size, checksum, headers }, blob, {
        fetch: fetchWith,
        onBytes: report,
        signal,
        ...(retryDelayMs === undefined ? {} : { retryDelayMs }),
      });
    }
    cache.link(commit, path, hash);
    before += size;
  }
  return total - kept;
}

function bytesThere(cache: RepositoryCache, { hash, size }: RemoteFile): number {
  const blob = cache.blob(hash);
  const whole = statSync(blob, { throwIfNoEntry: false });
  return Math.min(size, (whole ?? statSync(`${blob}.incomplete`, { throwIfNoEntry: false }))?.size ?? 0);
}

/** Checks the room on the disk before the first byte is downloaded. @param awaited bytes that other downloads will take of it */
function checkRoom(folder: string, id: string, bytes: number, awaited: number): void {
  const { bavail, bsize } = statfsSync(folder);
  const free = bavail * bsize - awaited;
  if (bytes <= free) return;
  const size = (count: number) => `${(count / 1e6).toFixed(0)} MB`;
  const others = awaited === 0 ? '' : ` besides the ${size(awaited)} of other downloads`;
  throw new HubError(
    `${id} needs ${size(bytes)} more, and the disk of ${folder} has ${size(Math.max(0, free))} left${others}; make room, or set HF_HUB_CACHE to a folder of another disk.`,
  );
}

/** Runs work that writes to the cache; an error of writing becomes one about the cache. */
async function writing<T>(folder: string, work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (error instanceof HubError || !['EACCES', 'EPERM', 'EROFS', 'ENOSPC', 'ENOTDIR'].includes(code ?? ''))
      throw error;
    throw new HubError(
      `${dirname(folder)} cannot be written (${writeReason(error)}); set HF_HUB_CACHE to a folder that can.`,
    );
  }
}
