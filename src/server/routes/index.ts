import { loadAdapterRoute, unloadAdapterRoute } from './adapters.js';
import { batchesRoute, batchRoute, cancelBatchRoute, createBatchRoute } from './batches.js';
import { cacheResetRoute } from './cache-reset.js';
import { cancelRoute } from './cancel.js';
import { chatCompletionsRoute } from './chat-completions.js';
import { completionsRoute } from './completions.js';
import {
  conversationItemRoute,
  conversationItemsRoute,
  conversationRoute,
  createConversationRoute,
  createItemsRoute,
  deleteConversationRoute,
  deleteItemRoute,
  updateConversationRoute,
} from './conversations.js';
import { dashboardFileRoute, dashboardRoute } from './dashboard.js';
import { docsFileRoute, docsRoute, openApiRoute } from './documentation.js';
import {
  classifyRoute,
  cohereRerankRoute,
  embeddingsRoute,
  poolingRoute,
  rerankRoute,
  scoreRoute,
} from './encoders.js';
import { deleteFileRoute, fileContentRoute, fileRoute, filesRoute, uploadRoute } from './files.js';
import { healthRoute, liveRoute } from './health.js';
import { infillRoute } from './infill.js';
import { invocationsRoute } from './invocations.js';
import { KSERVE_ROUTES } from './kserve.js';
import { loadRoute } from './load.js';
import { countTokensRoute, createMessageRoute } from './messages.js';
import { metricsRoute } from './metrics.js';
import { modelRoute, modelsRoute } from './models.js';
import { OLLAMA_ROUTES } from './ollama.js';
import { changePropsRoute, propsRoute, tokenizerInfoRoute } from './props.js';
import {
  cancelResponseRoute,
  compactRoute,
  createResponseRoute,
  deleteResponseRoute,
  inputItemsRoute,
  inputTokensRoute,
  responseRoute,
} from './responses.js';
import type { Route } from './route.js';
import { getLoadRoute, healthGenerateRoute, modelInfoRoute, serverInfoRoute } from './sglang.js';
import { modelsStreamRoute, statsRoute, statsStreamRoute } from './stats.js';
import {
  applyTemplateRoute,
  detokenizeRoute,
  renderConversationRoute,
  renderPromptRoute,
  tokenizeRoute,
} from './tokenize.js';
import { versionRoute } from './version.js';

/** Every route of the server but those of other protocols. Other methods of its paths are answered with 405. */
export const ROUTES: readonly Route[] = [
  chatCompletionsRoute,
  completionsRoute,
  infillRoute,
  invocationsRoute,
  embeddingsRoute,
  rerankRoute,
  cohereRerankRoute,
  scoreRoute,
  poolingRoute,
  classifyRoute,
  createResponseRoute,
  inputTokensRoute,
  compactRoute,
  responseRoute,
  deleteResponseRoute,
  inputItemsRoute,
  cancelResponseRoute,
  createConversationRoute,
  conversationRoute,
  updateConversationRoute,
  deleteConversationRoute,
  conversationItemsRoute,
  createItemsRoute,
  conversationItemRoute,
  deleteItemRoute,
  uploadRoute,
  filesRoute,
  fileRoute,
  fileContentRoute,
  deleteFileRoute,
  createBatchRoute,
  batchesRoute,
  batchRoute,
  cancelBatchRoute,
  createMessageRoute,
  countTokensRoute,
  tokenizeRoute,
  detokenizeRoute,
  applyTemplateRoute,
  renderPromptRoute,
  renderConversationRoute,
  tokenizerInfoRoute,
  propsRoute,
  changePropsRoute,
  cancelRoute,
  cacheResetRoute,
  modelsRoute,
  modelRoute,
  loadAdapterRoute,
  unloadAdapterRoute,
  healthRoute,
  liveRoute,
  versionRoute,
  loadRoute,
  modelInfoRoute,
  serverInfoRoute,
  getLoadRoute,
  healthGenerateRoute,
  metricsRoute,
  dashboardRoute,
  dashboardFileRoute,
  openApiRoute,
  docsRoute,
  docsFileRoute,
  statsRoute,
  statsStreamRoute,
  modelsStreamRoute,
];

/** Every route that a server may have. */
export const ALL_ROUTES: readonly Route[] = [...ROUTES, ...OLLAMA_ROUTES, ...KSERVE_ROUTES];
