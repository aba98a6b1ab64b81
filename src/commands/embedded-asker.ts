import { counted } from '../../base/sentences.js';
import type { Asker } from '../asking/asker.js';
import { UsageError } from '../errors/user-errors.js';
import { ApiKeys } from '../server/web/access/api-keys.js';
import type { Config } from '../settings/config.js';
import { loadConfigured } from './load-configured.js';
import { serveModels } from './open-server.js';

/** Milliseconds that the engine may take to end. */
const ENGINE_END_MS = 1_500;

/**
 * Loads a model to be asked in this process, without a socket: the server's own app answers, so answers are the same as
 * there.
 * @throws UsageError, HubError, CheckpointError, EngineError, AddonError.
 */
export async function loadAsker(config: Config, signal: AbortSignal): Promise<Asker> {
  const [entry, ...others] = config.models;
  if (entry === undefined || others.length > 0) {
    throw new UsageError(`One model is asked at a time, and ${config.models.length} are named by --model.`);
  }
  const [adapter, ...more] = Object.keys(entry.adapters);
  if (more.length > 0) {
    throw new UsageError(
      `One adapter is asked at a time, and ${1 + more.length} are named by --adapter and lora.`,
    );
  }
  const start = performance.now();
  // One user asks one question at a time, so the cache needs room for one sequence only.
  const alone = { ...config, maxActiveRequests: config.maxActiveRequests ?? 1 };
  const [loaded] = await loadConfigured(alone, signal);
  const close = () => loaded!.close({ abort: true, terminateAfterMs: ENGINE_END_MS });
  if (loaded!.kind === 'encoder') {
    await close();
    throw new UsageError(`${entry.model} is an encoder, which embeds or scores texts; it answers nothing.`);
  }
  const { app } = serveModels([{ entry, loaded: loaded! }], alone, {
    apiKeys: new ApiKeys([]),
    corsOrigins: [],
  });
  const { executor, instructionSet, threads, weights, maxSeqLen } = loaded!.info;
  return {
    model: adapter ?? entry.name,
    models: [adapter ?? entry.name],
    about: `${entry.name}${adapter === undefined ? '' : ` with ${adapter}`}: weights ${weights}, ${executor} executor on ${instructionSet}, ${counted(threads, 'thread')}, context of ${maxSeqLen} tokens`,
    maxSeqLen,
    loadMs: performance.now() - start,
    post: async (path, body, abort) =>
      app.fetch(
        new Request(`http://skein${path}`, {
          method: 'POST',
          headers: { 'content-type': 'application/json' },
          body: JSON.stringify(body),
          signal: abort,
        }),
      ),
    close,
  };
}
