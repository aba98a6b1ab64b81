import { messageOf } from '../../base/error-text.js';
import { StoreError } from '../../base/store-errors.js';
import type { JetStoreOptions } from '../../cluster/nats/jet-store.js';
import type { SHARED_BUCKETS } from '../../cluster/nats/names.js';
import { NatsContents } from '../../cluster/nats/nats-contents.js';
import { NatsPresence, SIGN_LIFE_MS } from '../../cluster/nats/nats-presence.js';
import { NatsRecords } from '../../cluster/nats/nats-records.js';
import { DEFAULT_FILE_LIMITS } from '../options/server/requests.js';
import type { SharedStores } from '../server/files/record-store.js';
import { DEFAULT_STORE_LIMITS } from '../server/openai/responses/response-store.js';
import { type Config, UsageError } from '../settings/config.js';
import type { OpenQueue } from './open-nats.js';

const MIB = 2 ** 20;
const DAY_MS = 86_400_000;
/** Milliseconds that the NATS server keeps what was not written again: longer than anything that clients store lives. */
const MAX_AGE_MS = 45 * DAY_MS;
/** Bytes of the record of a file at most: names have 4096 at most. */
const FILE_RECORD_BYTES = 8 * 1024;
/** Bytes of all responses and conversations: twice what they may have by estimate, since a change has both for a moment. */
const RESPONSE_BYTES = 2 * DEFAULT_STORE_LIMITS.maxBytes;
/** Least bytes that are set aside for contents. */
const LEAST_BYTES = 64 * MIB;
/** Some hundred bytes for each API key. */
const QUOTA_BYTES = 16 * MIB;
/** Bytes of what is known of models, with their tokenizers, and what does where there is no more room. */
const MODEL_BYTES = [256 * MIB, 32 * MIB];
/** Memory of messages, relative to what they hold. */
const OVERHEAD = 1.02;

/** What gateways share, as it is open. */
export interface SharedState extends SharedStores {
  /** What API keys have taken of their limits. */
  quotas: NatsRecords;
  presence: NatsPresence;
  /** What is known of models, with their files; null: the NATS server does not keep it. */
  models: NatsRecords | null;
}

/**
 * Opens what all gateways of a queue keep in its NATS server, and makes what is not there; null: this gateway keeps all by itself.
 * @param id of this gateway @throws UsageError where options exclude each other; an Error with one sentence where NATS refuses
 */
export async function openSharedState(
  config: Config,
  queue: OpenQueue,
  id: string,
): Promise<SharedState | null> {
  const { state = config.filesDir === undefined ? 'nats' : 'local' } = config;
  if (state === 'local') return null;
  if (config.filesDir !== undefined) {
    throw new UsageError(
      '--files-dir is a folder of one gateway; with --state nats files are in the NATS server.',
    );
  }
  const { nc, modules, names } = queue;
  const { maxFilesBytes = DEFAULT_FILE_LIMITS.maxBytes, maxFiles = DEFAULT_FILE_LIMITS.maxFiles } = config;
  const options = (maxBytes: number, more: Partial<JetStoreOptions> = {}): JetStoreOptions => ({
    storage: config.natsStorage,
    replicas: config.natsReplicas,
    maxBytes: Math.ceil(OVERHEAD * maxBytes),
    maxAgeMs: MAX_AGE_MS,
    ...more,
  });
  const records = (
    what: (typeof SHARED_BUCKETS)[number],
    maxBytes: number,
    more?: Partial<JetStoreOptions>,
  ) => new NatsRecords(nc, modules, names.shared(what), options(maxBytes, more));
  const files = records('FILES', Math.max(MIB, maxFiles * FILE_RECORD_BYTES));
  const batches = records('BATCHES', 64 * MIB);
  const responses = records('RESPONSES', RESPONSE_BYTES);
  const quotas = records('QUOTAS', QUOTA_BYTES);
  const contentsWith = (maxBytes: number) =>
    new NatsContents(nc, modules, names.shared('CONTENTS'), names.content, options(maxBytes));
  const signs = records('GATEWAYS', MIB, { storage: 'memory', maxAgeMs: SIGN_LIFE_MS });
  const presence = new NatsPresence(signs, id);
  try {
    for (const one of [files, batches, responses, quotas]) await one.open();
    const models = await openModels((maxBytes) => records('MODELS', maxBytes));
    const contents = await openContents(maxFilesBytes, contentsWith);
    await presence.start();
    return { files: { records: files, contents }, batches, responses, quotas, presence, models };
  } catch (error) {
    const full = error instanceof StoreError && error.kind === 'full';
    const hint = full
      ? 'lower --max-files-bytes, or give JetStream more (max_file_store)'
      : 'the account of this gateway has to be allowed to (docs/queue.md names the subjects)';
    throw new Error(
      `Gateways cannot keep their state in the NATS server: ${messageOf(error)} Either ${hint}, or take --state local.`,
    );
  }
}

/** Opens what is known of models; without it gateways forget those that have no worker as they end. @returns null: it cannot be had */
async function openModels(recordsWith: (maxBytes: number) => NatsRecords): Promise<NatsRecords | null> {
  let why: unknown;
  for (const bytes of MODEL_BYTES) {
    const models = recordsWith(bytes);
    try {
      await models.open();
      return models;
    } catch (error) {
      why = error;
    }
  }
  process.stderr.write(
    `skein: models without workers are forgotten at the end of the gateway: ${messageOf(why)}\n`,
  );
  return null;
}

/** Opens the stream of contents with what is to be set aside for it, or as much of it as there is. @throws StoreError */
async function openContents(
  wantedBytes: number,
  contentsWith: (maxBytes: number) => NatsContents,
): Promise<NatsContents> {
  for (let bytes = wantedBytes; ; bytes /= 2) {
    const contents = contentsWith(bytes);
    try {
      await contents.open();
      if (bytes < wantedBytes) {
        process.stderr.write(
          `skein: the NATS server sets ${Math.floor(bytes / MIB)} MiB aside for what clients store, since it has no more (max_file_store), and not the ${Math.floor(wantedBytes / MIB)} MiB of --max-files-bytes\n`,
        );
      }
      return contents;
    } catch (error) {
      const isFull = error instanceof StoreError && error.kind === 'full';
      if (!isFull || bytes / 2 < Math.min(wantedBytes, LEAST_BYTES)) throw error;
    }
  }
}
