package deponent.engine;

import java.util.Optional;

/**
 * The answer to a fork choice.
 *
 * @param status of the head
 * @param payloadId the payload that is being built, where attributes asked for one
 */
public record ForkchoiceUpdated(PayloadStatus status, Optional<PayloadId> payloadId) {}
