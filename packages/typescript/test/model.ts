import { SimpleChatModel } from "@langchain/core/language_models/chat_models";
import type { BaseMessage } from "@langchain/core/messages";

/** A chat model that answers with the last message, so that tests see what it was told. */
export class Repeating extends SimpleChatModel {
  override _llmType(): string {
    return "repeating";
  }

  override async _call(messages: BaseMessage[]): Promise<string> {
    return messages.at(-1)?.text ?? "";
  }
}
