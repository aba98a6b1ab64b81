import type { HarmonyConversation } from '../../generation/harmony/streams.js';

/** A conversation as a client sends it to OpenAI's route. @param parameters schema of the function weather */
export function harmonyBody({ messages, effort, tools }: HarmonyConversation, parameters: object) {
  const functions = [
    { name: 'weather', description: 'The weather.', parameters },
    { name: 'now', description: 'The time.' },
  ];
  return {
    reasoning_effort: effort,
    ...(tools && { tools: functions.map((one) => ({ type: 'function', function: one })) }),
    messages: messages.map(({ role, content, reasoning, call }) => ({
      role,
      content,
      ...(reasoning && { reasoning_content: reasoning }),
      ...(role === 'tool' && { tool_call_id: 'a' }),
      ...(call && {
        tool_calls: [
          { id: 'a', type: 'function', function: { name: call[0], arguments: JSON.stringify(call[1]) } },
        ],
      }),
    })),
  };
}
