import type { PieceSource } from '../../../callbacks/piece-source.js';
import type { TokenPiece, TokenRequest } from '../../../callbacks/token-request.js';
import type { AdapterWeights } from '../../../models/adapters/adapter-weights.js';
import type { TextModel, TokenEngine } from '../../generation/text-model.js';

/** The same model, all of whose requests have this adapter. The host sends its weights to the engine where that does not hold them. */
export function withAdapter(model: TextModel, loraTaskId: bigint, adapter: AdapterWeights): TextModel {
  const { engine } = model;
  const own = (request: TokenRequest): TokenRequest => ({ ...request, loraTaskId, adapter });
  const adapted: TokenEngine = {
    submit: (request): PieceSource<TokenPiece> => engine.submit(own(request)),
  };
  const { submitSeveral } = engine;
  if (submitSeveral !== undefined)
    adapted.submitSeveral = (request) => submitSeveral.call(engine, own(request));
  return { ...model, engine: adapted };
}
