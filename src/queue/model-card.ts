import { createHash } from 'node:crypto';
import { basename } from 'node:path';
import type { ModelCard } from '../../callbacks/nats/messages.js';
import type { EngineInfo } from '../../callbacks/worker-messages.js';
import type { Config, ConfiguredModel } from '../config.js';
import type { RunningModel } from '../serving/running-model.js';
import { type ModelFiles, textDigest } from './model-files.js';

/** What a worker tells of its model. */
export function modelCard(
  entry: ConfiguredModel,
  { info, adapters }: RunningModel<'generator'>,
  engine: EngineInfo,
  { facts: files }: ModelFiles,
  maxBeamWidth: number,
): ModelCard {
  const { enginePath: _, executorFallback: __, ...told } = info;
  const limits = {
    vocabSize: engine.vocabSize,
    endTokenIds: engine.endTokenIds,
    maxInputLen: info.maxInputLen,
    maxSeqLen: info.maxSeqLen,
    maxSequences: engine.maxSequences,
    maxNumTokens: engine.maxNumTokens,
    maxBeamWidth,
    maxAttentionWindow: engine.maxAttentionWindow,
    tokensPerBlock: engine.tokensPerBlock,
  };
  const identity = [textDigest(files), limits, entry.aliases];
  return {
    name: entry.name,
    aliases: [...entry.aliases],
    text: createHash('sha256').update(JSON.stringify(identity)).digest('hex').slice(0, 16),
    fileName: basename(entry.model),
    files,
    info: { ...told },
    engine: limits,
    adapterRoom: engine.adapters === null || adapters === null ? null : { ...engine.adapters },
    adapters: (adapters?.list() ?? []).map(({ name, rank, modules, bytes, digest }) => ({
      name,
      rank,
      modules: [...modules],
      bytes,
      digest,
    })),
  };
}

/**
 * Fingerprint of the workers that give equal bits, and take equal requests: another one's answer may be another.
 * How much memory a worker has is not in it, since that changes no answer.
 */
export function poolFingerprint(card: ModelCard, { options }: ConfiguredModel, config: Config): string {
  const { name, text, info, adapters } = card;
  const { attentionSinkTokens, draftModel, speculate, logitsPostProcessorModule } = {
    ...config,
    ...options,
  } as Readonly<Record<string, unknown>>;
  const identity = [
    name,
    text,
    info.fingerprint,
    info.executor,
    info.instructionSet,
    info.kvDtype,
    adapters.map(({ name: adapter, digest }) => [adapter, digest]),
    attentionSinkTokens ?? null,
    // A draft changes no answer, but its engine refuses what others take.
    [draftModel, speculate, logitsPostProcessorModule].map((value) => String(value ?? '')),
  ];
  return createHash('sha256').update(JSON.stringify(identity)).digest('hex').slice(0, 16);
}
