import { setTimeout } from 'node:timers/promises';
import { HubApiError, listFiles, modelInfo } from '@huggingface/hub';
import { asSentence } from '../../base/sentences.js';
import { HubError } from '../errors/user-errors.js';
import type { Checksum } from './checksum.js';
import {
  boundedHubFetch,
  checkedCommit,
  checkedHash,
  checkedSize,
  HUB_LIMITS,
  UnfitAnswer,
} from './hub-answers.js';
import type { Repository } from './repository.js';
import type { HubSettings } from './settings.js';

/** A file of a repository at a commit. */
export interface RemoteFile {
  path: string;
  /** Size of the file, in bytes. */
  size: number;
  /** Hash of the file's contents, which also names its blob in the cache. */
  hash: string;
  checksum: Checksum;
}

export interface RemoteRepository {
  commit: string;
  files: RemoteFile[];
}

const MAX_ATTEMPTS = 3;

/**
 * Asks the hub for a repository's files at a branch, tag or commit; errors that may pass are tried again. @throws
 * HubError.
 */
export async function askHub(
  repository: Repository,
  revision: string,
  settings: Pick<HubSettings, 'endpoint' | 'token'>,
  { fetch, signal, retryDelayMs = 1_000 }: AskOptions,
): Promise<RemoteRepository> {
  for (let attempt = 1; ; attempt++) {
    try {
      return await ask(repository, revision, settings, boundedHubFetch(fetch, signal));
    } catch (error) {
      signal?.throwIfAborted();
      const mayPass =
        error instanceof HubApiError
          ? error.statusCode === 429 || error.statusCode >= 500
          : !(error instanceof UnfitAnswer) && !isTimeout(error);
      if (!mayPass || attempt === MAX_ATTEMPTS)
        throw problemOf(error, { id: repository.id, revision, ...settings });
      await setTimeout(retryDelayMs * attempt, undefined, { signal });
    }
  }
}

async function ask(
  { id }: Repository,
  revision: string,
  { endpoint, token }: Pick<HubSettings, 'endpoint' | 'token'>,
  fetchWith: typeof fetch,
): Promise<RemoteRepository> {
  // The library takes only tokens of huggingface.co; a mirror may have others.
  const withToken: typeof fetch = (input, init) => {
    const headers = new Headers(init?.headers);
    if (token !== null) headers.set('authorization', `Bearer ${token}`);
    return fetchWith(input, { ...init, headers });
  };
  const common = { hubUrl: endpoint, fetch: withToken };
  const { sha: given } = await modelInfo({ name: id, revision, additionalFields: ['sha'], ...common });
  const sha = checkedCommit(given);
  const files: RemoteFile[] = [];
  for await (const { type, path, size, oid, lfs } of listFiles({
    repo: id,
    revision: sha,
    recursive: true,
    ...common,
  })) {
    if (type !== 'file' || oid === undefined || !isInside(path)) continue;
    const algorithm = lfs ? 'sha256' : 'git';
    const hash = checkedHash(algorithm, lfs ? lfs.oid : oid, path);
    files.push({
      path,
      size: checkedSize(lfs?.size ?? size, path),
      hash,
      checksum: { algorithm, value: hash },
    });
    if (files.length > HUB_LIMITS.files)
      throw new UnfitAnswer(`it lists more than ${HUB_LIMITS.files} files`);
  }
  return { commit: sha, files };
}

/** True where a repository's path stays inside the folder that it is joined to. */
function isInside(path: string): boolean {
  return !path.startsWith('/') && !path.includes('\\') && !path.split('/').includes('..');
}

export interface AskOptions {
  fetch: typeof fetch;
  signal?: AbortSignal | undefined;
  /** Wait before the second attempt. */
  retryDelayMs?: number | undefined;
}

interface Question {
  id: string;
  revision: string;
  endpoint: string;
  token: string | null;
}

function isTimeout(error: unknown): boolean {
  return error instanceof Error && error.name === 'TimeoutError';
}

/** Why there was no answer, or none that is understood, as a clause. */
function whyUnreachable(error: unknown): string {
  const { message, cause } = error as Error & { cause?: Error };
  if (isTimeout(error)) return `it has not answered within ${HUB_LIMITS.answerMs / 1000} seconds`;
  if (cause?.message) return cause.message;
  // The library reads what it gets without a check of its form.
  const isOfForm = error instanceof SyntaxError || (error instanceof TypeError && message !== 'fetch failed');
  return isOfForm ? `its answer is not that of a hub (${message})` : message;
}

function problemOf(error: unknown, { id, revision, endpoint, token }: Question): HubError {
  const { hostname } = new URL(endpoint);
  if (!(error instanceof HubApiError)) {
    return new HubError(
      `${hostname} could not be asked for ${id}: ${asSentence(whyUnreachable(error))} With HF_HUB_OFFLINE=1 only what was downloaded before is used; HF_ENDPOINT names another hub.`,
      'unreachable',
    );
  }
  const { statusCode } = error;
  if (statusCode === 404 && revision !== 'main')
    return new HubError(
      `${hostname} has no ${id}, or no revision ${JSON.stringify(revision)} of it.`,
      'refused',
    );
  // The hub hides a repository from those who may not see it.
  if (statusCode === 401 || statusCode === 404) {
    const hint =
      token === null
        ? 'if it is private, set HF_TOKEN to a token that may read it'
        : 'or the token of HF_TOKEN may not read it';
    return new HubError(`${hostname} has no model ${id}; ${hint}.`, 'refused');
  }
  if (statusCode === 403) {
    return new HubError(
      `${hostname} refuses ${id}: it is open only to who has accepted its terms at ${endpoint}/${id}, with a token in HF_TOKEN.`,
      'refused',
    );
  }
  return new HubError(
    `${hostname} answers ${statusCode} when asked for ${id}; try again later.`,
    'unreachable',
  );
}
