import { createHash } from 'node:crypto';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { planNetwork } from '../../models/architectures/index.js';
import type { ModelConfig } from '../../models/model-config.js';
import type { NetworkPlan } from '../../network/plan.js';
import type { EngineTensor } from '../directory/engine-directory.js';
import { modelName } from '../ranks/model-name.js';
import type { Engine } from './engine.js';

/** Files of an engine directory that decide how texts become tokens. */
const TEXT_FILES = ['tokenizer.json', 'tokenizer_config.json', 'chat_template.jinja'];

/**
 * Digest of an engine's content: its configuration, the checksum of each tensor in the precision that it is computed in,
 * and its tokenizer. The same model built with the same precisions has it on every machine, wherever its files lie and
 * whenever they were written. Reads no weights.
 *
 * Engines without checksums (written by older versions, or not yet packed in a cache that cannot be written to) are
 * identified by the files that they were made of, as the cache knows them: by names and times too.
 *
 * A head that drafts changes no bit of an answer, so an engine that was built with it has the digest of one without.
 *
 * @param tensors the engine's, with the checksums that an executor has found since it was opened
 */
export function engineDigest(
  { directory, manifest, plan }: Pick<Engine, 'directory' | 'manifest' | 'plan'>,
  tensors: readonly EngineTensor[] = manifest.tensors,
): string {
  const { precision, outputPrecision, source } = manifest;
  const { config, ...network } = withoutHead(manifest.config, { plan, tensors });
  const weights = network.tensors.every(({ checksum }) => checksum !== undefined)
    ? modelName({ plan: network.plan, tensors: [...network.tensors] })
    : [source.hash, precision, outputPrecision];
  const hash = createHash('sha256').update(JSON.stringify([config, weights]));
  for (const name of TEXT_FILES) {
    const file = join(directory, name);
    if (!existsSync(file)) continue;
    const bytes = readFileSync(file);
    hash.update(`\0${name} ${bytes.length}\0`).update(bytes);
  }
  return hash.digest('hex');
}

interface Network {
  plan: NetworkPlan;
  tensors: readonly EngineTensor[];
}

function withoutHead(config: ModelConfig, network: Network): Network & { config: ModelConfig } {
  const { draftHead, ...bare } = config;
  if (!draftHead) return { config, ...network };
  const plan = planNetwork(bare);
  const names = new Set(plan.weights.map(({ name }) => name));
  return { config: bare, plan, tensors: network.tensors.filter(({ name }) => names.has(name)) };
}
