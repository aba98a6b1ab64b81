import { accessSync, constants, existsSync, statfsSync, statSync } from 'node:fs';
import { createServer } from 'node:net';
import { dirname } from 'node:path';
import { gigabytes } from '../../base/address-space.js';
import { messageOf } from '../../base/error-text.js';
import type { HubSettings } from '../hub/settings.js';
import { storedModels } from '../hub/stored-models.js';
import { type Finding, note, ok, wrong } from './finding.js';

/** A small model in 4 bits has less than this. */
const LITTLE_SPACE = 5e9;

/** The folder of the hub's cache: whether models can be stored there. */
export function cacheFinding({ cacheFolder }: Pick<HubSettings, 'cacheFolder'>): Finding {
  const elsewhere = 'HF_HUB_CACHE names another folder';
  const there = nearestPath(cacheFolder);
  if (!statSync(there).isDirectory())
    return wrong('models', `${cacheFolder} cannot be made: ${there} is no folder`, elsewhere);
  try {
    accessSync(there, constants.W_OK);
  } catch (error) {
    return wrong('models', `${cacheFolder} cannot be written: ${messageOf(error)}`, elsewhere);
  }
  const models = existsSync(cacheFolder) ? storedModels(cacheFolder) : [];
  const { bavail, bsize } = statfsSync(there);
  const free = bavail * bsize;
  const bytes = models.reduce((sum, model) => sum + model.bytes, 0);
  const text = `${models.length} in ${cacheFolder}, ${gigabytes(bytes)}; ${gigabytes(free)} free`;
  return free < LITTLE_SPACE
    ? note('models', text, `skein rm deletes models; ${elsewhere}`)
    : ok('models', text);
}

function nearestPath(path: string): string {
  return existsSync(path) || dirname(path) === path ? path : nearestPath(dirname(path));
}

/** Longest wait for the hub, in milliseconds. */
const HUB_MS = 5_000;

/** Whether the hub answers. One request, without a token. */
export async function hubFinding(
  { endpoint, isOffline }: Pick<HubSettings, 'endpoint' | 'isOffline'>,
  ask: typeof fetch = fetch,
): Promise<Finding> {
  if (isOffline) return ok('hub', 'not asked: HF_HUB_OFFLINE is set, and models come from the cache');
  const path = 'a model can be a folder or a GGUF file, or be in the cache';
  try {
    const answer = await ask(`${endpoint}/api/models?limit=1`, { signal: AbortSignal.timeout(HUB_MS) });
    await answer.body?.cancel();
    if (answer.ok) return ok('hub', `${endpoint} answers`);
    return note('hub', `${endpoint} answers ${answer.status}`, path);
  } catch (error) {
    return note('hub', `${endpoint} does not answer: ${reasonOf(error)}`, path);
  }
}

/** fetch says "fetch failed", and why in its cause. */
function reasonOf(error: unknown): string {
  const cause = error instanceof Error ? error.cause : undefined;
  return messageOf(cause instanceof Error && cause.message !== '' ? cause : error);
}

/** Whether a server could listen where `skein serve` does by default. */
export async function portFinding(port: number, host = '127.0.0.1'): Promise<Finding> {
  const server = createServer();
  try {
    await new Promise<void>((resolve, reject) => {
      server.once('error', reject);
      server.listen(port, host, resolve);
    });
    return ok('port', `${port} is free`);
  } catch (error) {
    const code = (error as NodeJS.ErrnoException).code;
    const why = code === 'EADDRINUSE' ? 'is in use' : `cannot be opened: ${messageOf(error)}`;
    return note('port', `${port} ${why}`, 'skein serve --port takes another');
  } finally {
    server.close();
  }
}
