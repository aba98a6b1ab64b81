import { input, type NamedText, says } from '../../base/named-text.js';
import { ParameterError } from '../../callbacks/sampling-params.js';
import type { Tensor } from '../../callbacks/types.js';
import type { ImageSpan } from '../sequences/request-spec.js';

/** Most pictures of a prompt. */
const MAX_IMAGES = 4096;

const refuse = (field: 'image_grids' | 'input_ids' | 'prompt_embedding_table', what: NamedText) =>
  new ParameterError(field, says`${input(field)} ${what}.`);

/**
 * Pictures of a prompt, and its tokens: ids from vocabSize on stand at the places of pictures alone.
 *
 * @param numRows rows of the prompt's own table @returns null: no pictures are named
 */
export function readImages(
  inputs: Record<string, Tensor>,
  vocabSize: number,
  numRows: number,
): { spans: ImageSpan[]; tokens: Int32Array } | null {
  const grids = inputs.image_grids?.data as Int32Array | undefined;
  if (grids === undefined || grids.length === 0) return null;
  const tokens = inputs.input_ids!.data as Int32Array;
  const spans = readSpans(grids, tokens.length);
  const count = spans.reduce((sum, { start, end }) => sum + end - start, 0);
  if (count !== numRows) {
    throw refuse(
      'prompt_embedding_table',
      says`has ${numRows} rows; the pictures of ${input('image_grids')} have ${count} tokens, one for each is expected`,
    );
  }
  checkIds(tokens, spans, vocabSize);
  return { spans, tokens };
}

function readSpans(grids: Int32Array, length: number): ImageSpan[] {
  const count = grids.length / 3;
  if (count > MAX_IMAGES)
    throw refuse('image_grids', `names ${count} pictures; a prompt has at most ${MAX_IMAGES}`);
  const spans: ImageSpan[] = [];
  for (let i = 0; i < count; i++) {
    const [start, rows, columns] = grids.subarray(3 * i, 3 * i + 3) as unknown as [number, number, number];
    const least = spans.at(-1)?.end ?? 0;
    if (rows < 1 || columns < 1)
      throw refuse('image_grids', `has a grid of ${rows} x ${columns} in row ${i}; both are at least 1`);
    const end = start + rows * columns;
    if (start < least || end > length) {
      throw refuse(
        'image_grids',
        `puts ${rows} x ${columns} tokens at place ${start} in row ${i}; places ${least} to ${length - 1} are left`,
      );
    }
    spans.push({ start, end, rows, columns });
  }
  return spans;
}

function checkIds(tokens: Int32Array, spans: readonly ImageSpan[], vocabSize: number): void {
  let next = 0;
  for (const [place, token] of tokens.entries()) {
    while (next < spans.length && place >= spans[next]!.end) next++;
    const isPicture = next < spans.length && place >= spans[next]!.start;
    if (token >= 0 && token >= vocabSize === isPicture) continue;
    const range = isPicture ? `from ${vocabSize} on` : `from 0 to ${vocabSize - 1}`;
    throw refuse(
      'input_ids',
      `holds ${token} at place ${place}; ${isPicture ? 'ids of a picture' : 'tokens'} are ${range}`,
    );
  }
}
