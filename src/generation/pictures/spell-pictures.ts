import { JoinedRows } from '../../../callbacks/joined-rows.js';
import type { TokenRequest } from '../../../callbacks/token-request.js';
import type { PromptTokens } from '../text-model.js';
import type { DecodedPicture, Picture, SeenPicture, SentPicture } from './picture.js';

/** See TokenRequest.imageGrids. */
export type ImageGrids = readonly (readonly number[])[];

/**
 * Where pictures stand in a prompt: each run of their tokens.
 *
 *   text     a  <begin> <image> <image> <end>  b        pictures in the order of their places
 *   tokens   5  30      31      31      32     6        tokenId 31, grids [[2, 1, 2]]
 *
 * @throws Error where the text has other tokens of pictures than they have
 */
export function gridsIn(
  tokens: PromptTokens,
  tokenId: number,
  pictures: readonly Pick<Picture, 'grids'>[],
): ImageGrids {
  const found: number[][] = [];
  let place = 0;
  const next = () => {
    place = tokens.indexOf(tokenId, place);
    return place >= 0;
  };
  for (const { rows, columns } of pictures.flatMap(({ grids }) => grids)) {
    if (!next())
      throw new Error(
        `The prompt has fewer tokens of pictures than its pictures: ${found.length} runs of them.`,
      );
    found.push([place, rows, columns]);
    for (let i = 0; i < rows * columns; i++, place++) {
      if (tokens[place] === tokenId) continue;
      throw new Error(`The prompt has ${i} tokens side by side where a picture has ${rows} x ${columns}.`);
    }
  }
  if (next()) throw new Error('The prompt has more tokens of pictures than its pictures.');
  return found;
}

/**
 * A prompt in which pictures have the ids that spell them:
 *
 *   tokens   5  30      31      31      32     6
 *   spelled  5  30      V+7     V+90    32     6
 */
export function spelled(
  tokens: PromptTokens,
  grids: ImageGrids,
  pictures: readonly Pick<DecodedPicture, 'ids'>[],
): Int32Array {
  const prompt = Int32Array.from(tokens);
  const ids = pictures.flatMap((picture) => [...picture.ids]);
  let next = 0;
  for (const [place = 0, rows = 0, columns = 0] of grids)
    for (let i = 0; i < rows * columns; i++) prompt[place + i] = ids[next++]!;
  return prompt;
}

/** True where the pictures of a prompt are these, as `spelled` spells them. */
export function spells(
  { promptTokens, imageGrids = [] }: Pick<TokenRequest, 'promptTokens' | 'imageGrids'>,
  pictures: readonly (Pick<Picture, 'grids'> & Pick<DecodedPicture, 'ids'>)[],
): boolean {
  const grids = pictures.flatMap((picture) => picture.grids);
  const ids = pictures.flatMap((picture) => [...picture.ids]);
  if (grids.length !== imageGrids.length) return false;
  let next = 0;
  return grids.every(({ rows, columns }, i) => {
    const [place, ...given] = imageGrids[i]!;
    const first = next;
    next += rows * columns;
    const own = ids.slice(first, next);
    const isGrid = given[0] === rows && given[1] === columns;
    return isGrid && own.every((id, token) => promptTokens[place! + token] === id);
  });
}

const isSent = (picture: DecodedPicture): picture is SentPicture => 'sent' in picture;
const isSeen = (picture: DecodedPicture): picture is SeenPicture => !isSent(picture);

/** What a request has of one model's pictures, in the order of their places: their rows, or what these are made of where it runs. */
export async function pictureFields(
  pictures: readonly DecodedPicture[],
): Promise<Pick<TokenRequest, 'promptEmbeddings' | 'joinedEmbeddings' | 'sentPictures'>> {
  const sent = pictures.filter(isSent);
  if (sent.length > 0) return { sentPictures: sent.map((picture) => picture.sent) };
  const promptEmbeddings = await rowsOfPictures(pictures.filter(isSeen));
  return { promptEmbeddings, joinedEmbeddings: await JoinedRows.of(promptEmbeddings) };
}

/** The rows of all pictures, one for each token, in the order of their places. */
export async function rowsOfPictures(
  pictures: readonly SeenPicture[],
): Promise<NonNullable<TokenRequest['promptEmbeddings']>> {
  const all = await Promise.all(pictures.map((picture) => picture.rows()));
  return all.flatMap((rows, i) => splitRows(rows, pictures[i]!.ids.length));
}

/** A picture's rows, one for each of its tokens. */
export function splitRows(rows: Float32Array, count: number): Float32Array[] {
  const width = rows.length / count;
  return Array.from({ length: count }, (_, row) => rows.subarray(row * width, (row + 1) * width));
}
