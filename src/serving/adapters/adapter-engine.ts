import type { PieceSource } from '../../../callbacks/piece-source.js';
import type { TokenPiece, TokenRequest } from '../../../callbacks/token-request.js';
import type { TextModel, TokenEngine } from '../../generation/text-model.js';

/** The same model, all of whose requests have this adapter. The host sends its weights to the engine where that does not hold them. */
export function withAdapter(
  model: TextModel,
  own: Required<Pick<TokenRequest, 'loraTaskId' | 'adapter' | 'adapterName'>>,
): TextModel {
  const { engine } = model;
  const adapted: TokenEngine = {
    submit: (request): PieceSource<TokenPiece> => engine.submit({ ...request, ...own }),
  };
  const { submitSeveral } = engine;
  if (submitSeveral !== undefined)
    adapted.submitSeveral = (request) => submitSeveral.call(engine, { ...request, ...own });
  return { ...model, engine: adapted };
}
