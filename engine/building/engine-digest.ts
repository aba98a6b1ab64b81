import { createHash } from 'node:crypto';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
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
 * @param tensors the engine's, with the checksums that an executor has found since it was opened
 */
export function engineDigest(
  { directory, manifest, plan }: Pick<Engine, 'directory' | 'manifest' | 'plan'>,
  tensors: readonly EngineTensor[] = manifest.tensors,
): string {
  const { config, precision, outputPrecision, source } = manifest;
  const weights = tensors.every(({ checksum }) => checksum !== undefined)
    ? modelName({ plan, tensors: [...tensors] })
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
