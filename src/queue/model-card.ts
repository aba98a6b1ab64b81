import { createHash } from 'node:crypto';
import { basename } from 'node:path';
import { skeinVersion } from '../../base/package-info.js';
import type { EngineInfo } from '../../callbacks/worker-messages.js';
import type { EngineCard, ModelCard } from '../../cluster/nats/beat.js';
import { fingerprintOf } from '../../engine/peft/adapter-fingerprint.js';
import type { RunningModel } from '../serving/running-model.js';
import type { Config, ConfiguredModel } from '../settings/config.js';
import { type ModelFiles, textDigest } from './model-files.js';

/** What a worker reports about its model. */
export function modelCard(
  entry: ConfiguredModel,
  { info, adapters, model, seesWith }: RunningModel<'generator'>,
  engine: EngineInfo,
  { facts: files }: ModelFiles,
  maxBeamWidth: number,
): ModelCard {
  const {
    enginePath: _,
    executorFallback: __,
    loweredContext: ___,
    samplingLeftOut: ____,
    remarks: _____,
    expertReading: ______,
    sampling,
    ...told
  } = info;
  const limits = {
    vocabSize: engine.vocabSize,
    endTokenIds: [...model.endTokens],
    maxInputLen: info.maxInputLen,
    maxSeqLen: info.maxSeqLen,
    maxSequences: engine.maxSequences,
    maxNumTokens: engine.maxNumTokens,
    maxBeamWidth,
    maxAttentionWindow: engine.maxAttentionWindow,
    tokensPerBlock: engine.tokensPerBlock,
  };
  return {
    name: entry.name,
    aliases: [...entry.aliases],
    text: cardText({ files, engine: limits, aliases: [...entry.aliases] }),
    fileName: basename(entry.model),
    files,
    info: { ...told },
    engine: limits,
    sampling: { ...sampling },
    ...(seesWith && { sight: { ...seesWith.facts } }),
    ...(model.whyBlind === undefined ? {} : { whyBlind: model.whyBlind }),
    adapterRoom: engine.adapters === null || adapters === null ? null : { ...engine.adapters },
    adapters: (adapters?.list() ?? []).map(({ name, rank, modules, bytes, digest, taskId, weights }) => ({
      name,
      rank,
      modules: [...modules],
      bytes,
      digest,
      ...(weights === null
        ? {}
        : { blockKey: { taskId: Number(taskId), fingerprint: fingerprintOf(weights) } }),
    })),
  };
}

/** ModelCard.text, of what the card itself says. */
export function cardText({
  files,
  engine: { vocabSize, endTokenIds },
  aliases,
}: Pick<ModelCard, 'files' | 'engine' | 'aliases'>): string {
  return digestOf([textDigest(files), vocabSize, endTokenIds, aliases]);
}

/** What a request may ask for at most, in a fixed order. */
function limitsOf(engine: EngineCard): (number | null)[] {
  const { maxInputLen, maxSeqLen, maxSequences, maxNumTokens, maxBeamWidth } = engine;
  const { maxAttentionWindow, tokensPerBlock } = engine;
  return [
    maxInputLen,
    maxSeqLen,
    maxSequences,
    maxNumTokens,
    maxBeamWidth,
    maxAttentionWindow,
    tokensPerBlock,
  ];
}

/**
 * Fingerprint of the workers that give equal bits, and take equal requests: another one's answer may be another.
 * How much memory a worker has is not in it, since that changes no answer.
 */
export function poolFingerprint(
  card: ModelCard,
  { options }: ConfiguredModel,
  config: Config,
  isPrefill: boolean,
): string {
  const { name, text, engine, info, adapters, sight } = card;
  const { attentionSinkTokens, draftModel, speculate, logitsPostProcessorModule } = {
    ...config,
    ...options,
  } as Readonly<Record<string, unknown>>;
  const identity = [
    name,
    text,
    limitsOf(engine),
    info.fingerprint,
    info.executor,
    info.instructionSet,
    info.kvDtype,
    adapters.map(({ name: adapter, digest }) => [adapter, digest]),
    attentionSinkTokens ?? null,
    // A draft changes no answer, but its engine refuses what others take.
    [draftModel, speculate, logitsPostProcessorModule].map((value) => String(value ?? '')),
    ...(sight === undefined ? [] : [sight.tower]),
    ...(isPrefill ? ['prefill'] : []),
  ];
  return digestOf(identity);
}

/**
 * Number of the form in which states are handed over: one snapshot, as the executor has it, after the last
 * block.
 */
const STATES_FORM = 1;

/**
 * Digest of all that decides the content of a block of the KV cache: two engines with the same one have, of the same
 * tokens, the same bits in it. null: the engine's blocks cannot be had.
 */
export function blockLayout(
  { info }: ModelCard,
  engine: EngineInfo,
  { options }: ConfiguredModel,
  config: Config,
): string | null {
  const { tokensPerBlock, bytesPerBlock, bytesPerState, maxAttentionWindow } = engine;
  if (bytesPerBlock === null) return null;
  const computed = [info.fingerprint, info.executor, info.instructionSet, info.kvDtype];
  const { attentionSinkTokens } = { ...config, ...options } as Readonly<Record<string, unknown>>;
  const window = [maxAttentionWindow, attentionSinkTokens ?? null];
  // After the blocks of a model with states comes a snapshot, which a reader that does not know the form
  // could not use.
  const states = bytesPerState === 0 ? [] : [STATES_FORM, bytesPerState];
  return digestOf([skeinVersion(), computed, tokensPerBlock, bytesPerBlock, window, ...states]);
}

function digestOf(identity: readonly unknown[]): string {
  return createHash('sha256').update(JSON.stringify(identity)).digest('hex').slice(0, 16);
}
