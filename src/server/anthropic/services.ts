import type { AnsweringServices } from '../answering/services.js';
import { type RouteServices, routesWith } from '../web/route.js';

/** Services of Anthropic's routes. */
export type AnthropicServices = RouteServices & AnsweringServices;

export const defineRoute = routesWith<AnthropicServices>();
