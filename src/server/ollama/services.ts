import type { ModelLife } from '../answering/model-life.js';
import type { AnsweringServices } from '../answering/services.js';
import type { ApiKeys } from '../web/access/api-keys.js';
import { type RouteServices, routesWith } from '../web/route.js';

/** Services of Ollama's routes. */
export interface OllamaServices extends RouteServices, AnsweringServices {
  /** Models that are loaded on demand; null: there are none. */
  life: ModelLife | null;
  apiKeys: ApiKeys;
  version: string;
}

export const defineRoute = routesWith<OllamaServices>();
