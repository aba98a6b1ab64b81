import type { TokenRequest } from '../../../callbacks/token-request.js';
import type { PromptTokens, TextModel } from '../text-model.js';
import type { Picture } from './picture.js';

/** A prompt in which pictures have ids of their own. */
export interface SpelledPrompt {
  promptTokens: Int32Array;
  /** See TokenRequest. */
  imageGrids: number[][];
}

/**
 * Replaces the tokens that stand for pictures by the ids that spell them:
 *
 *   text     a  <begin> <image> <image> <end>  b        pictures in the order of their places
 *   tokens   5  30      31      31      32     6        tokenId 31
 *   spelled  5  30      V+7     V+90    32     6        imageGrids [[2, 1, 2]]
 *
 * @throws Error where the text has other tokens of pictures than they have
 */
export function spellPictures(
  tokens: PromptTokens,
  tokenId: number,
  pictures: readonly Picture[],
): SpelledPrompt {
  const promptTokens = Int32Array.from(tokens);
  const imageGrids: number[][] = [];
  let place = 0;
  const next = () => {
    place = promptTokens.indexOf(tokenId, place);
    return place >= 0;
  };
  for (const { ids, grids } of pictures) {
    let spelled = 0;
    for (const { rows, columns } of grids) {
      if (!next())
        throw new Error(
          `The prompt has fewer tokens of pictures than its pictures: one of ${ids.length} has only ${spelled}.`,
        );
      imageGrids.push([place, rows, columns]);
      for (let i = 0; i < rows * columns; i++, place++) {
        if (promptTokens[place] !== tokenId)
          throw new Error(
            `The prompt has ${i} tokens side by side where a picture has ${rows} x ${columns}.`,
          );
        promptTokens[place] = ids[spelled++]!;
      }
    }
  }
  if (next()) throw new Error('The prompt has more tokens of pictures than its pictures.');
  return { promptTokens, imageGrids };
}

/** What a request has of pictures. */
export type PictureFields = Required<Pick<TokenRequest, 'promptEmbeddings' | 'imageGrids'>>;

/** The rows of all pictures, one for each token, in the order of their places. */
export async function rowsOfPictures(
  pictures: readonly Picture[],
  signal: AbortSignal | undefined,
): Promise<Float32Array[]> {
  const all = await Promise.all(pictures.map((picture) => picture.rows(signal)));
  return all.flatMap((rows, i) => {
    const { length } = pictures[i]!.ids;
    const width = rows.length / length;
    return Array.from({ length }, (_, row) => rows.subarray(row * width, (row + 1) * width));
  });
}

/** A prompt to be shown, in which pictures have the token that stands for them in the vocabulary. */
export function unspelled(
  tokens: PromptTokens,
  { sight, vocabSize }: Pick<TextModel, 'sight' | 'vocabSize'>,
): PromptTokens {
  if (!sight) return tokens;
  const { tokenId } = sight;
  return Int32Array.from(tokens, (token) => (token >= vocabSize ? tokenId : token));
}
