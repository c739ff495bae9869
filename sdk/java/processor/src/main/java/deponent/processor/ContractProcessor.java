package deponent.processor;

import deponent.eth.MalformedException;
import java.io.IOException;
import java.io.Writer;
import java.nio.file.Files;
import java.nio.file.InvalidPathException;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import java.util.LinkedHashSet;
import java.util.Optional;
import java.util.Set;
import javax.annotation.processing.AbstractProcessor;
import javax.annotation.processing.Messager;
import javax.annotation.processing.RoundEnvironment;
import javax.lang.model.SourceVersion;
import javax.lang.model.element.AnnotationMirror;
import javax.lang.model.element.Element;
import javax.lang.model.element.ElementKind;
import javax.lang.model.element.TypeElement;
import javax.tools.Diagnostic;

/**
 * Writes a class {@code NameContract} for each interface {@code Name} with {@code @Contract}. What
 * is wrong with it is an error of the compiler, at the place where it is.
 *
 * <p>The option {@code -Adeponent.abi=FOLDER} names the folder of JSON ABIs, which
 * {@code @Contract(abi = "Erc20.json")} takes.
 */
public final class ContractProcessor extends AbstractProcessor {
  private static final String CONTRACT = InterfaceModel.CLIENT + "Contract";
  private static final String FOLDER = "deponent.abi";

  /** Interfaces with types that other processors may write yet, by name. */
  private final Set<String> waiting = new LinkedHashSet<>();

  /** One processor, which a compiler makes by its name. */
  public ContractProcessor() {}

  @Override
  public Set<String> getSupportedAnnotationTypes() {
    return Set.of(
        CONTRACT,
        InterfaceModel.VIEW,
        InterfaceModel.SEND,
        InterfaceModel.EVENT,
        InterfaceModel.ERROR);
  }

  @Override
  public Set<String> getSupportedOptions() {
    return Set.of(FOLDER);
  }

  @Override
  public SourceVersion getSupportedSourceVersion() {
    return SourceVersion.latestSupported();
  }

  @Override
  public boolean process(Set<? extends TypeElement> annotations, RoundEnvironment round) {
    Set<TypeElement> types = new LinkedHashSet<>();
    for (String name : waiting) {
      types.add(processingEnv.getElementUtils().getTypeElement(name));
    }
    waiting.clear();
    for (TypeElement annotation : annotations) {
      for (Element element : round.getElementsAnnotatedWith(annotation)) {
        if (annotation.getQualifiedName().contentEquals(CONTRACT)) {
          types.add((TypeElement) element);
        } else if (element.getEnclosingElement().getKind() != ElementKind.INTERFACE) {
          String name = "@" + annotation.getSimpleName();
          report(new Fault(element, name + " stands in an interface with @Contract"));
        }
      }
    }
    types.forEach(this::write);
    return true;
  }

  private void write(TypeElement type) {
    AnnotationMirror contract = InterfaceModel.annotation(type, CONTRACT);
    try {
      Optional<AbiFile> file = file(type, contract);
      InterfaceModel reader = new InterfaceModel(processingEnv.getElementUtils(), type, file);
      Model model = reader.read(contract);
      reader.faults().forEach(this::report);
      if (reader.faults().isEmpty()) {
        write(type, model);
      }
    } catch (Fault fault) {
      report(fault);
    } catch (JavaTypes.Unknown unknown) {
      // Where no processor writes the type, the compiler says that it is missing.
      waiting.add(type.getQualifiedName().toString());
    }
  }

  private void write(TypeElement type, Model model) throws Fault {
    String name = model.inPackage.isEmpty() ? "" : model.inPackage + ".";
    try (Writer writer =
        processingEnv.getFiler().createSourceFile(name + model.className, type).openWriter()) {
      writer.write(ContractSource.of(model));
    } catch (IOException failed) {
      throw new Fault(type, model.className + " is not written: " + failed.getMessage());
    }
  }

  private Optional<AbiFile> file(TypeElement type, AnnotationMirror contract) throws Fault {
    String name = InterfaceModel.valueOf(contract, "abi");
    if (name.isEmpty()) {
      return Optional.empty();
    }
    String folder = processingEnv.getOptions().get(FOLDER);
    if (folder == null) {
      throw new Fault(
          type,
          contract,
          "the folder of " + name + " is not known: -A" + FOLDER + "=FOLDER says it");
    }
    try {
      return Optional.of(AbiFile.of(Files.readString(Path.of(folder, name))));
    } catch (NoSuchFileException | InvalidPathException no) {
      Path whole = Path.of(folder).toAbsolutePath();
      throw new Fault(type, contract, "there is no file " + name + " in " + whole);
    } catch (IOException | MalformedException no) {
      throw new Fault(type, contract, name + " is not read: " + no.getMessage());
    }
  }

  private void report(Fault fault) {
    Messager messager = processingEnv.getMessager();
    String message = fault.getMessage();
    messager.printMessage(Diagnostic.Kind.ERROR, message, fault.element, fault.annotation);
  }
}
