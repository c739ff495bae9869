package deponent.processor;

import javax.lang.model.element.AnnotationMirror;
import javax.lang.model.element.Element;
import org.jspecify.annotations.Nullable;

/** What is wrong at a place of the source. */
final class Fault extends Exception {
  private static final long serialVersionUID = 1;

  final transient Element element;
  final transient @Nullable AnnotationMirror annotation;

  Fault(Element element, String message) {
    this(element, null, message);
  }

  Fault(Element element, @Nullable AnnotationMirror annotation, String message) {
    super(message);
    this.element = element;
    this.annotation = annotation;
  }
}
