import { CheckpointError, type TokenizerFiles } from '../checkpoints/checkpoint.js';
import { TokenType } from './gguf-tokenizer.js';
import { type SentencePieces, sentencePieceJson } from './made-tokenizer-json.js';
import { type ProtoField, protoFields } from './protobuf.js';
import type { AddedTokenJson } from './tokenizer-json.js';

/**
 * Fields of sentencepiece_model.proto:
 *
 *   ModelProto      1 pieces*  2 trainer_spec  3 normalizer_spec
 *   SentencePiece   1 piece  2 score  3 type (TokenType; absent: normal)
 *   TrainerSpec     3 model_type (1 unigram, 2 BPE)  40 unk_id  41 bos_id  42 eos_id  43 pad_id
 *   NormalizerSpec  2 precompiled_charsmap  3 add_dummy_prefix  4 remove_extra_whitespaces
 */
const BPE = 2;
/** Ids of special tokens that TrainerSpec has where the file does not say. */
const ROLES = [
  ['unk', 40, 0],
  ['bos', 41, 1],
  ['eos', 42, 2],
  ['pad', 43, -1],
] as const;
const MAX_PIECES = 2 ** 24;

interface Piece {
  text: string;
  score: number;
  type: number;
}

/**
 * Makes the Hugging Face tokenizer of a tokenizer.model, as SentencePiece wrote it for Llama 2, Mistral or Gemma: the kind BPE, whose
 * text is not normalized. BOS is added, as these models' classes in transformers do.
 *
 * @param legacy as tokenizer_config.json has it: true adds a space after each added token too
 * @throws CheckpointError for another kind, or bytes that are no such file
 */
export function tokenizerFromSentencePiece(
  file: string,
  bytes: Uint8Array,
  legacy: boolean,
): Omit<TokenizerFiles, 'chatTemplate'> {
  const fail = (what: string) => new CheckpointError(`${file}: ${what}.`);
  const model = protoFields(bytes);
  if (model === null) throw fail('is no SentencePiece model');
  const nested = (number: number) => protoFields(bytesOf(model, number) ?? new Uint8Array());
  const [trainer, normalizer] = [nested(2), nested(3)];
  const pieces = model.filter(({ number }) => number === 1).map(({ value }) => pieceOf(value));
  if (trainer === null || normalizer === null || pieces.includes(null) || pieces.length === 0)
    throw fail('is no SentencePiece model');
  if (pieces.length > MAX_PIECES) throw fail(`has ${pieces.length} pieces; at most ${MAX_PIECES} are read`);
  const kind = numberOf(trainer, 3) ?? 1;
  if (kind !== BPE)
    throw fail(
      'holds a SentencePiece model of the kind unigram, word or char; put the tokenizer.json of the model next to it',
    );
  if ((bytesOf(normalizer, 2)?.length ?? 0) > 0 || (numberOf(normalizer, 4) ?? 1) !== 0)
    throw fail('normalizes texts by rules of its own; put the tokenizer.json of the model next to it');
  const hasPrefix = (numberOf(normalizer, 3) ?? 1) !== 0;
  return made(pieces as Piece[], trainer, hasPrefix ? (legacy ? 'each' : 'first') : 'none');
}

function made(
  pieces: readonly Piece[],
  trainer: readonly ProtoField[],
  prefix: SentencePieces['prefix'],
): Omit<TokenizerFiles, 'chatTemplate'> {
  const tokens = pieces.map(({ text }) => text);
  const tokenizerConfig: Record<string, unknown> = { add_bos_token: true, add_eos_token: false };
  for (const [role, number, usual] of ROLES) {
    const token = tokens[numberOf(trainer, number) ?? usual];
    if (token !== undefined) tokenizerConfig[`${role}_token`] = token;
  }
  const unknown = pieces.find(({ type }) => type === TokenType.unknown);
  const tokenizerJson = sentencePieceJson({
    tokens,
    scores: pieces.map(({ score }) => score),
    isPiece: (id) => pieces[id]!.type === TokenType.normal,
    unknown: unknown?.text ?? null,
    prefix,
    added: addedTokens(pieces),
  });
  return { tokenizerJson, tokenizerConfig };
}

function addedTokens(pieces: readonly Piece[]): AddedTokenJson[] {
  return pieces.flatMap(({ text: content, type }, id) => {
    const special = type === TokenType.control || type === TokenType.unknown;
    return special || type === TokenType.userDefined ? [{ id, content, special, normalized: false }] : [];
  });
}

function pieceOf(bytes: ProtoField['value']): Piece | null {
  const fields = typeof bytes === 'number' ? null : protoFields(bytes);
  if (fields === null) return null;
  const score = bytesOf(fields, 2);
  return {
    text: new TextDecoder().decode(bytesOf(fields, 1)),
    score: score?.length === 4 ? new DataView(score.buffer, score.byteOffset).getFloat32(0, true) : 0,
    type: numberOf(fields, 3) ?? TokenType.normal,
  };
}

/** The last value of a field, as protobuf has it where one is there twice. */
function bytesOf(fields: readonly ProtoField[], number: number): Uint8Array | undefined {
  const value = fields.findLast((field) => field.number === number)?.value;
  return typeof value === 'number' ? undefined : value;
}

function numberOf(fields: readonly ProtoField[], number: number): number | undefined {
  const value = fields.findLast((field) => field.number === number)?.value;
  return typeof value === 'number' ? value : undefined;
}
