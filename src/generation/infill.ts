import { encodeTexts } from './encode-texts.js';
import type { PromptTokens, TextCodec } from './text-model.js';

/** Tokens that mark the text before and after the gap, and the gap to fill. */
interface InfillTokens {
  prefix: string;
  suffix: string;
  middle: string;
  /** In front of the repository's name and of each file's, where the model may know them. */
  repository?: string;
  file?: string;
  /** True where the suffix comes first. */
  isSuffixFirst?: boolean;
}

/** Tokens of infilling in published models. */
const KNOWN: readonly InfillTokens[] = [
  // Qwen coders, CodeGemma.
  {
    prefix: '<|fim_prefix|>',
    suffix: '<|fim_suffix|>',
    middle: '<|fim_middle|>',
    repository: '<|repo_name|>',
    file: '<|file_sep|>',
  },
  // StarCoder, Granite, SantaCoder.
  {
    prefix: '<fim_prefix>',
    suffix: '<fim_suffix>',
    middle: '<fim_middle>',
    repository: '<reponame>',
    file: '<file_sep>',
  },
  { prefix: '<fim-prefix>', suffix: '<fim-suffix>', middle: '<fim-middle>' },
  // DeepSeek coders.
  { prefix: '<｜fim▁begin｜>', suffix: '<｜fim▁hole｜>', middle: '<｜fim▁end｜>' },
  // Code Llama.
  { prefix: '▁<PRE>', suffix: '▁<SUF>', middle: '▁<MID>' },
  // GLM coders.
  { prefix: '<|code_prefix|>', suffix: '<|code_suffix|>', middle: '<|code_middle|>' },
  // Codestral.
  { prefix: '[PREFIX]', suffix: '[SUFFIX]', middle: '', isSuffixFirst: true },
];

/**
 * Prompts for filling in the text between each of `prompts` and `suffix`; null where the vocabulary has no tokens for
 * that.
 * @param prompts all texts, encoded with the tokens that the model wants around a text, or all tokens.
 */
export async function infillPrompts(
  codec: TextCodec,
  prompts: readonly (string | readonly number[])[],
  suffix: string,
): Promise<number[][] | null> {
  const marks = await infillTokens(codec);
  if (marks === null) return null;
  const texts = prompts.filter((prompt) => typeof prompt === 'string');
  const { prefix, suffix: behind, middle, isSuffixFirst = false } = marks;
  const pieces = [prefix, behind, middle, suffix, ...texts];
  const [beforePrefix, beforeSuffix, beforeMiddle, ofSuffix, ...ofTexts] = await encodeTexts(codec, pieces, {
    addSpecialTokens: false,
  });
  // Tokens that the model wants in front of a text, such as a BOS, go in front of the whole.
  const around = texts.length > 0 ? await codec.encodeText('') : [];
  const ofPrompts: readonly PromptTokens[] = texts.length > 0 ? ofTexts : (prompts as readonly number[][]);
  return ofPrompts.map((prompt) => {
    const parts = isSuffixFirst
      ? [around, beforeSuffix!, ofSuffix!, beforePrefix!, prompt]
      : [around, beforePrefix!, prompt, beforeSuffix!, ofSuffix!, beforeMiddle!];
    return parts.flatMap((ids) => Array.from(ids));
  });
}

async function infillTokens(codec: TextCodec): Promise<InfillTokens | null> {
  for (const tokens of KNOWN) {
    const texts = [tokens.prefix, tokens.suffix, tokens.middle].filter((text) => text !== '');
    const encoded = await Promise.all(texts.map((text) => codec.encodePiece(text)));
    if (encoded.every((ids) => ids.length === 1)) return tokens;
  }
  return null;
}

/** What is known around a gap in a file. */
export interface InfillParts {
  prefix: string;
  suffix: string;
  /** Text after the prefix that is never cut. */
  prompt: string;
  /** Other files, or parts of them. */
  extra: readonly { filename: string; text: string }[];
}

/** Tokens of a file's prefix and suffix, three to one, as llama.cpp's server has them with its default batch. */
const NEAR_TOKENS = 2048;
/** Between parts of files where the vocabulary has no token for that. */
const SNIPPET = '\n\n--- snippet ---\n\n';

/**
 * The prompt for a gap in a file, with other files in front of it; null where the vocabulary has no tokens for that.
 * What is too long loses what is farthest from the gap, as in llama.cpp's server (format_infill of server-common.cpp):
 *
 *   [repository] name [file] name, extra, ... [file] name [prefix] prefix, prompt [suffix] suffix [middle]
 *                     cut ->                              cut ->                      <- cut
 *
 * @param room most tokens of the prompt @param unitsPerToken most UTF-16 units of a token
 */
export async function infillPrompt(
  codec: TextCodec,
  parts: InfillParts,
  { room, unitsPerToken }: { room: number; unitsPerToken: number },
): Promise<{ tokens: number[]; isCut: boolean } | null> {
  const marks = await infillTokens(codec);
  if (marks === null) return null;
  const { isSuffixFirst = false } = marks;
  const repository = await singleToken(codec, marks.repository);
  const file = await singleToken(codec, marks.file);
  const units = room * unitsPerToken;
  // Longer texts would be cut anyway.
  const extra = lastFiles(parts.extra, units).flatMap(({ filename, text }) => [
    file === null ? SNIPPET : `${filename}\n`,
    text,
  ]);
  const near = [parts.prefix.slice(-units), parts.suffix.slice(0, units), parts.prompt];
  const around = ['myproject\n', 'filename\n', marks.prefix, marks.suffix, marks.middle];
  const encoded = await encodeTexts(codec, [...near, ...around, ...extra], { addSpecialTokens: false });
  const [prefix, suffix, prompt, project, name, pre, suf, mid, ...extras] = encoded.map((ids) =>
    Array.from(ids),
  );
  const first = Array.from(await codec.encodeText(''));
  const others = [
    ...(repository === null ? [] : [repository, ...project!]),
    ...extras.flatMap((ids, index) => (file !== null && index % 2 === 0 ? [file, ...ids] : ids)),
    ...(file === null ? [] : [file, ...name!]),
  ];
  const fixed = first.length + pre!.length + suf!.length + mid!.length + prompt!.length;
  const quarter = Math.floor(Math.min(NEAR_TOKENS, Math.max(0, room - fixed)) / 4);
  const before = last(prefix!, 3 * quarter);
  const behind = suffix!.slice(0, Math.max(0, quarter - 2 - prompt!.length));
  const far = last(others, Math.max(0, room - fixed - before.length - behind.length));
  const start = [...pre!, ...before, ...prompt!];
  const end = [...suf!, ...behind];
  const gap = isSuffixFirst ? [...end, ...start] : [...start, ...end, ...mid!];
  const isCut =
    before.length < prefix!.length || behind.length < suffix!.length || far.length < others.length;
  return { tokens: [...first, ...far, ...gap], isCut };
}

/** The last texts, of at most `units` UTF-16 units together. */
function lastFiles(files: InfillParts['extra'], units: number): InfillParts['extra'] {
  const kept: { filename: string; text: string }[] = [];
  for (let i = files.length - 1, left = units; i >= 0 && left > 0; i--) {
    const { filename, text } = files[i]!;
    kept.unshift({ filename, text: text.slice(-left) });
    left -= text.length;
  }
  return kept;
}

const last = (tokens: readonly number[], count: number) => (count === 0 ? [] : tokens.slice(-count));

/** The token of a text; null where it is not a single token. */
async function singleToken(codec: TextCodec, text: string | undefined): Promise<number | null> {
  if (text === undefined) return null;
  const ids = await codec.encodePiece(text);
  return ids.length === 1 ? ids[0]! : null;
}
