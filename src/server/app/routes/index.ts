import { countTokensRoute, createMessageRoute } from '../../anthropic/routes.js';
import { KSERVE_ROUTES } from '../../kserve/routes.js';
import { OLLAMA_ROUTES } from '../../ollama/routes.js';
import { loadAdapterRoute, unloadAdapterRoute } from '../../openai/routes/adapters.js';
import { batchesRoute, batchRoute, cancelBatchRoute, createBatchRoute } from '../../openai/routes/batches.js';
import { cacheResetRoute } from '../../openai/routes/cache-reset.js';
import { cancelRoute } from '../../openai/routes/cancel.js';
import { chatCompletionsRoute } from '../../openai/routes/chat-completions.js';
import { classifyRoute, predictRoute } from '../../openai/routes/classify.js';
import { cohereEmbedRoute, cohereRerankRoute } from '../../openai/routes/cohere.js';
import { completionsRoute } from '../../openai/routes/completions.js';
import {
  conversationItemRoute,
  conversationItemsRoute,
  conversationRoute,
  createConversationRoute,
  createItemsRoute,
  deleteConversationRoute,
  deleteItemRoute,
  updateConversationRoute,
} from '../../openai/routes/conversations.js';
import { embeddingsRoute, poolingRoute, rerankRoute, scoreRoute } from '../../openai/routes/encoders.js';
import {
  deleteFileRoute,
  fileContentRoute,
  fileRoute,
  filesRoute,
  uploadRoute,
} from '../../openai/routes/files.js';
import { infillRoute } from '../../openai/routes/infill.js';
import { invocationsRoute } from '../../openai/routes/invocations.js';
import { mcpServersRoute } from '../../openai/routes/mcp-servers.js';
import { changePropsRoute, propsRoute, tokenizerInfoRoute } from '../../openai/routes/props.js';
import {
  cancelResponseRoute,
  compactRoute,
  createResponseRoute,
  deleteResponseRoute,
  inputItemsRoute,
  inputTokensRoute,
  responseRoute,
} from '../../openai/routes/responses.js';
import {
  getLoadRoute,
  healthGenerateRoute,
  modelInfoRoute,
  serverInfoRoute,
} from '../../openai/routes/sglang.js';
import { embedAllRoute, embedSparseRoute } from '../../openai/routes/token-outputs.js';
import {
  applyTemplateRoute,
  detokenizeRoute,
  renderConversationRoute,
  renderPromptRoute,
  tokenizeRoute,
} from '../../openai/routes/tokenize.js';
import type { ServerRoute } from '../server-context.js';
import { cancelDownloadRoute, catalogueRoute, downloadRoute } from './catalogue.js';
import { dashboardFileRoute, dashboardRoute } from './dashboard.js';
import { docsFileRoute, docsRoute, openApiRoute } from './documentation.js';
import { modelRoute, modelsRoute } from './models.js';
import { poolWeightsRoute, setPoolWeightsRoute } from './pool-weights.js';
import { healthRoute, liveRoute, loadRoute, metricsRoute, versionRoute } from './server.js';
import { modelsStreamRoute, statsRoute, statsStreamRoute } from './stats.js';
import { usageRoute } from './usage.js';

/** Every route but those of Ollama and KServe, which have lists of their own. Other methods of their paths are answered with 405. */
export const ROUTES: readonly ServerRoute[] = [
  chatCompletionsRoute,
  completionsRoute,
  infillRoute,
  invocationsRoute,
  embeddingsRoute,
  rerankRoute,
  cohereEmbedRoute,
  cohereRerankRoute,
  scoreRoute,
  poolingRoute,
  classifyRoute,
  predictRoute,
  embedSparseRoute,
  embedAllRoute,
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
  mcpServersRoute,
  propsRoute,
  changePropsRoute,
  cancelRoute,
  cacheResetRoute,
  modelsRoute,
  modelRoute,
  catalogueRoute,
  downloadRoute,
  cancelDownloadRoute,
  loadAdapterRoute,
  unloadAdapterRoute,
  healthRoute,
  liveRoute,
  versionRoute,
  loadRoute,
  usageRoute,
  poolWeightsRoute,
  setPoolWeightsRoute,
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
export const ALL_ROUTES: readonly ServerRoute[] = [...ROUTES, ...OLLAMA_ROUTES, ...KSERVE_ROUTES];
